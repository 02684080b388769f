#include "runfile/checksum_list.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/counted.h"
#include "core/json.h"
#include "core/sha256.h"
#include "runfile/listed_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace gainlens::runfile {
namespace {

namespace fs = std::filesystem;

/// The files of a checkpoint: a list that lacks one of those that are there proves nothing of it.
constexpr std::string_view always_listed[] = {"config.json", "model.safetensors", "tokenizer.model"};

constexpr std::size_t digest_length = 64, max_list_bytes = std::size_t{1} << 20;

/// The checksum and the name in a line of a list.
std::pair<std::string, std::string> entry_of(std::string_view line, const std::string& where) {
  const bool has_digest = is_sha256(line.substr(0, digest_length));
  const std::string_view rest = has_digest ? line.substr(digest_length) : std::string_view();
  const std::string name(rest.starts_with("  ") || rest.starts_with(" *") ? rest.substr(2) : std::string_view());
  CHECK(names_file_below(name),
        "{}: '{}' is no checksum of a file in its folder; repeat the command that wrote the folder, or delete the list",
        where, printable(line, 100));
  return {std::string(line.substr(0, digest_length)), name};
}

std::vector<std::pair<std::string, std::string>> read_list(const fs::path& list) {
  const std::string text = read_text_file(list, max_list_bytes), where = printable(list.string());
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    entries.push_back(entry_of(rest.substr(0, end), where));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  CHECK(!entries.empty(), "{}: lists no file; repeat the command that wrote the folder, or delete the list", where);
  return entries;
}

}  // namespace

std::string faults_in_words(std::span<const FileFault> faults) {
  if (faults.empty()) return {};
  std::vector<std::string> others;
  for (const FileFault& fault : faults.subspan(1)) {
    std::string name = printable(fault.file.string());
    if (fault.file != faults.front().file && std::ranges::find(others, name) == others.end())
      others.push_back(std::move(name));
  }
  if (others.empty()) return faults.front().message;
  return fmt::format("{}. And {}: {}", faults.front().message, counted(others.size(), "other file"),
                     fmt::join(others, ", "));
}

void write_checksum_list(const fs::path& folder, std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) text += sha256_file(folder / name) + "  " + name + "\n";
  write_file_atomically(folder / checksum_list_name, text);
}

ComparedFolder compare_with_list(const fs::path& folder, const std::string& repair, Listed which) {
  const fs::path list = folder / checksum_list_name;
  ComparedFolder found;
  found.has_list = fs::exists(list);
  if (!found.has_list) return found;
  const auto entries = read_list(list);
  for (const std::string_view name : always_listed) {
    if (!fs::exists(folder / name) || std::ranges::any_of(entries, [&](const auto& one) { return one.second == name; }))
      continue;
    found.faults.push_back(
        {folder / name, fmt::format("{}: is not listed in {}; put the right list back, or {}",
                                    printable((folder / name).string()), checksum_list_name, repair)});
  }
  for (const auto& [listed, name] : entries) {
    if (which == Listed::here && fs::path(name).has_parent_path()) continue;
    const fs::path file = folder / name;
    const std::string shown = printable(file.string());
    if (!fs::is_regular_file(file)) {
      found.faults.push_back({file, fmt::format("{}: is missing, and {} lists it; put it back, or {}", shown,
                                                checksum_list_name, repair)});
      continue;
    }
    if (std::string fault = link_fault(folder, name); !fault.empty()) {
      found.faults.push_back({file, std::move(fault)});
      continue;
    }
    const std::string digest = sha256_file(file);
    if (digest == listed) continue;
    found.faults.push_back(
        {file,
         fmt::format("{}: its sha256 is {}, and {} says {}: the file has changed since the training wrote it; put "
                     "it back, or {}",
                     shown, digest, checksum_list_name, listed, repair)});
  }
  return found;
}

}  // namespace gainlens::runfile
