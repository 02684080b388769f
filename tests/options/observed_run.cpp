#include "options/observed_run.h"

#include "core/json.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/shared_data.h"

#include <hdf5.h>

#include <cstring>
#include <filesystem>
#include <regex>
#include <sstream>

namespace gainlens::testing {
namespace {

namespace fs = std::filesystem;

/// Files that hold the request, checksums of such files, or times.
bool keeps_request(const fs::path& file) {
  const std::string name = file.filename();
  return name == "request.json" || name == "log.json" || name == "manifest.json" || file.extension() == ".sha256" ||
         file.string().find("shards/") != std::string::npos;
}

/// Without durations, which differ from run to run.
std::string without_times(const std::string& text) {
  static const std::regex member(R"("seconds":[ 0-9.e+-]*)");
  return std::regex_replace(text, member, "\"seconds\":0");
}

/// A table whose last column is called "seconds" loses it.
void add_lines(const std::string& text, ObservedRun& seen) {
  static const std::regex last_number(" +[0-9.]+$");
  std::istringstream lines(text);
  std::string line;
  bool timed = false;
  for (int number = 1; std::getline(lines, line); ++number) {
    timed = timed || line.ends_with(" seconds");
    seen.parts["line " + std::to_string(number)] =
        without_times(timed ? std::regex_replace(line, last_number, "") : line);
  }
}

herr_t add_dataset(hid_t file, const char* name, const H5O_info_t* info, void* place) {
  if (info->type != H5O_TYPE_DATASET || std::string_view(name).find("seconds") != std::string_view::npos) return 0;
  auto& [parts, prefix] = *static_cast<std::pair<std::map<std::string, std::string>&, std::string>*>(place);
  const hid_t set = H5Dopen(file, name, H5P_DEFAULT), type = H5Dget_type(set), space = H5Dget_space(set);
  std::string bytes;
  if (H5Tis_variable_str(type) > 0) {
    std::vector<char*> texts(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    const hid_t memory = H5Tcopy(type);
    if (!texts.empty()) H5Dread(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, static_cast<void*>(texts.data()));
    for (const char* text : texts) bytes += std::string(text == nullptr ? "" : text) + "\n";
    if (!texts.empty()) H5Dvlen_reclaim(memory, space, H5P_DEFAULT, static_cast<void*>(texts.data()));
    H5Tclose(memory);
  } else {
    bytes.resize(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)) * H5Tget_size(type));
    if (!bytes.empty()) H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data());
  }
  H5Sclose(space);
  H5Tclose(type);
  H5Dclose(set);
  parts[prefix + name] = bytes;
  return 0;
}

/// The datasets, without the attributes: those hold the request.
void add_hdf5(const fs::path& path, const std::string& name, ObservedRun& seen) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  std::pair<std::map<std::string, std::string>&, std::string> place{seen.parts, name + "/"};
  H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, add_dataset, &place);
  H5Fclose(file);
}

/// The tensors, without the metadata: those hold the request.
void add_tensors(const std::string& bytes, const std::string& name, ObservedRun& seen) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const Json header = Json::parse(bytes.substr(sizeof length, length));
  for (const auto& [tensor, entry] : header.items()) {
    if (tensor == "__metadata__") continue;
    const auto begin = entry.at("data_offsets").at(0).get<std::size_t>();
    const auto end = entry.at("data_offsets").at(1).get<std::size_t>();
    seen.parts[name + "/" + tensor] =
        entry.at("shape").dump() + entry.at("dtype").dump() + bytes.substr(sizeof length + length + begin, end - begin);
  }
}

void add_file(const fs::path& path, const std::string& name, ObservedRun& seen) {
  const std::string bytes = bytes_of(path);
  seen.parts[name] = "is there";
  if (keeps_request(name)) return;
  if (path.extension() == ".h5") return add_hdf5(path, name, seen);
  if (path.extension() == ".safetensors") return add_tensors(bytes, name, seen);
  seen.parts[name] = path.extension() == ".json" ? without_times(bytes) : bytes;
}

}  // namespace

ObservedRun observe(const Words& words) {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const ProgramResult result = run_gainlens(words);
  fs::current_path(before);
  ObservedRun seen{result.exit_code, result.error, {}};
  add_lines(result.out, seen);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder.path())) {
    if (entry.is_regular_file()) add_file(entry.path(), entry.path().lexically_relative(folder.path()), seen);
  }
  return seen;
}

std::set<std::string> differences(const ObservedRun& a, const ObservedRun& b, const std::set<std::string>& ignored) {
  std::set<std::string> found;
  for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    for (const auto& [name, content] : one->parts) {
      const auto same = other->parts.find(name);
      if (!ignored.contains(name) && (same == other->parts.end() || same->second != content)) found.insert(name);
    }
  }
  if (a.exit_code != b.exit_code) found.insert("exit code");
  return found;
}

}  // namespace gainlens::testing
