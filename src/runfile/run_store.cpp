#include "runfile/run_store.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/counted.h"
#include "core/listener.h"
#include "core/sha256.h"
#include "runfile/checksums.h"
#include "runfile/run_file_name.h"
#include "runfile/run_folder.h"
#include "runfile/run_proof.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace gainlens::runfile {
namespace {

namespace fs = std::filesystem;

/// Refuses a folder whose run was asked for otherwise.
void check_same(const Json& stored, const Json& asked, const fs::path& folder, const std::vector<std::string>& named) {
  if (stored == asked) return;
  const std::string where = printable(folder.string());
  CHECK(stored.is_object() && stored.value("format", Json()) == asked.at("format"),
        "--out: {} holds another run; give a new folder", where);
  for (const std::string& key : named)
    CHECK(stored.value(key, Json()) == asked.value(key, Json()),
          "--out: {} holds a run with other {}; give a new folder", where, key);
  for (const auto& [key, value] : asked.items())
    CHECK(stored.value(key, Json()) == value, "--out: {} holds a run with another {}; give a new folder", where, key);
  for (const auto& [key, value] : stored.items())
    CHECK(asked.contains(key), "--out: {} holds a run with '{}'; give a new folder", where, printable(key, 40));
}

constexpr const char* manifest_name = "manifest.jsonl";
constexpr std::string_view units_folder = "units/";

constexpr std::string_view write_manifest_again =
    "delete the file and repeat the command that makes the run, which writes it again";

std::map<std::string, std::string> read_manifest_of_store(const fs::path& file) {
  std::map<std::string, std::string> digests;
  const std::string text = read_text_file(file);
  int number = 1;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1, ++number) {
    const std::string where = fmt::format("{}, line {}", printable(file.string()), number);
    end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    Json json;
    try {
      json = parse_json(line, where);
    } catch (const InvalidArgument& error) {
      throw_invalid("{}; {}", error.what(), write_manifest_again);
    }
    CHECK(json.is_object() && json.size() == 2 && json.contains("name") && json["name"].is_string() &&
              json.contains("sha256") && json["sha256"].is_string(),
          "{}: is not a line of a manifest: '{}'; {}", where, printable(line, 100), write_manifest_again);
    const std::string name = json["name"], digest = json["sha256"];
    CHECK(is_sha256(digest), "{}: '{}' is no sha256; {}", where, printable(digest, 64), write_manifest_again);
    CHECK(names_file_below(name), "{}: '{}' is no file of this folder; {}", where, printable(name, 100),
          write_manifest_again);
    CHECK(digests.emplace(name, digest).second, "{}: '{}' stands in it twice; {}", where, printable(name, 100),
          write_manifest_again);
  }
  return digests;
}

/// The files that a manifest has to list: those that are there, and the result.
std::vector<std::string> files_to_list(const fs::path& folder, const std::string& result) {
  std::vector<std::string> names{result};
  if (fs::exists(folder / request_file_name)) names.emplace_back(request_file_name);
  for (const std::string& unit : StoredUnits(folder, Json()).names())
    names.push_back(fmt::format("{}{}.json", units_folder, unit));
  return names;
}

void prove_file(const fs::path& folder, const std::string& name, const std::string& listed) {
  CHECK(fs::exists(folder / name), "{}: is listed in {} and is not there; repeat the command, which makes it again",
        printable((folder / name).string()), manifest_name);
  check_no_link(folder, name);
  check_digest(
      folder / name, listed, " and manifest.jsonl says",
      name == request_file_name
          ? "the file has changed since it was written; put the right file back"
          : "the file has changed since it was written; delete it and repeat the command, which makes it again");
}

bool holds(const fs::path& file, std::string_view text) {
  return fs::is_regular_file(file) && fs::file_size(file) == text.size() && sha256_file(file) == sha256_hex(text);
}

}  // namespace

StoredUnits::StoredUnits(fs::path folder, const Json& request)
    : folder_(std::move(folder)), request_(sha256_hex(json_text(request))) {
  folder_ /= "units";
}

fs::path StoredUnits::file(std::string_view name) const {
  return folder_ / fmt::format("{}.json", name);
}

bool StoredUnits::has(std::string_view name) const {
  return fs::exists(file(name));
}

std::vector<std::string> StoredUnits::names() const {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".json") found.push_back(at->path().stem().string());
  std::ranges::sort(found);
  return found;
}

std::string StoredUnits::checksum(std::string_view name, const Json& unit) const {
  return sha256_hex(fmt::format("{}\n{}\n{}", request_, name, json_text(unit)));
}

std::string StoredUnits::text(std::string_view name, const Json& unit) const {
  return json_text({{"sha256", checksum(name, unit)}, {"unit", unit}}) + "\n";
}

void StoredUnits::check_has_checksum(std::string_view name) const {
  const fs::path at = file(name);
  const Json stored = read_checked(at, [](const Json& json) { return json; });
  CHECK(stored.is_object() && stored.contains("sha256") && stored.contains("unit"),
        "{}: has no checksum, as units of older versions; delete {} and repeat the command", printable(at.string()),
        printable(folder_.string()));
}

const Json& StoredUnits::proven(const Json& stored, std::string_view name) const {
  const Json& unit = stored.at("unit");
  CHECK(stored.at("sha256") == checksum(name, unit), "it is not what was written, or that of another run");
  return unit;
}

void Scaffold::note_missing(const fs::path& folder) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path at = fs::absolute(folder).lexically_normal(); !at.empty() && !fs::exists(at, error);
       at = at.parent_path()) {
    if (at.has_filename()) missing.push_back(at);
    if (at == at.parent_path()) break;
  }
  paths_.insert(paths_.end(), missing.rbegin(), missing.rend());
}

Scaffold::~Scaffold() {
  std::error_code ignored;
  for (; !paths_.empty(); paths_.pop_back()) {
    fs::remove(paths_.back(), ignored);
    // A folder that somebody else uses, or a unit whose writing failed late.
    if (fs::exists(paths_.back(), ignored)) return;
  }
}

RunStore::RunStore(fs::path path, const Json& request, const std::vector<std::string>& named,
                   const std::map<std::string, std::string>& files)
    : path_(std::move(path)), units_(path_, request) {
  if (path_.empty()) return;
  holds_run(request, named);  // before anything is written
  made_.note_missing(path_);
  ensure_writable_folder(path_);
  lock_.emplace(path_);
  if (holds_run(request, named)) {  // it may have begun with another call, or in another process
    made_.keep();
  } else {
    for (const char* name : {"lock", "request.json"}) made_.note(path_ / name);
    for (const auto& [name, content] : files) made_.note(path_ / name);
    made_.note(path_ / "units");
    write_file_atomically(path_ / "request.json", json_text(request, 2) + "\n");
  }
  for (const auto& [name, content] : files)
    if (!fs::exists(path_ / name)) write_file_atomically(path_ / name, content);
  make_folder(path_ / "units");
}

bool RunStore::holds_run(const Json& request, const std::vector<std::string>& named) const {
  check_empty_or_run(path_);
  if (!fs::exists(path_ / "request.json")) return false;
  check_same(read_json_file(path_ / "request.json"), request, path_, named);
  return true;
}

void RunStore::tell_of_stored() const {
  const std::size_t stored = path_.empty() ? 0 : units_.names().size();
  if (stored > 0)
    tell_note("{}: {} by an earlier call; this one continues", printable(path_.string()),
              stored == 1 ? "1 unit was measured" : fmt::format("{} units were measured", stored));
}

void RunStore::keep_unit(std::string_view name, const Json& unit) {
  if (path_.empty()) return;
  write_file_atomically(units_.file(name), units_.text(name, unit));
  made_.keep();
}

void store_result(const fs::path& folder, const ResultForm& form, const Json& result) {
  const std::string text = json_text(result, 1) + "\n";
  std::map<std::string, std::string> digests;
  for (const std::string& name : files_to_list(folder, form.file))
    digests[name] = name == form.file ? sha256_hex(text) : sha256_file(folder / name);
  std::string lines;
  for (const auto& [name, sha256] : digests) lines += json_text({{"name", name}, {"sha256", sha256}}) + "\n";
  const fs::path manifest = folder / manifest_name, file = folder / form.file;
  if (holds(manifest, lines) && holds(file, text)) return;
  if (fs::exists(manifest) && !fs::is_regular_file(manifest))  // the old result stays
    throw_run_failed("{}: is no file; move it away and repeat the command", printable(manifest.string()));
  fs::remove(file);
  write_file_atomically(manifest, lines);
  write_file_atomically(file, text);
}

std::string prove_store(const fs::path& folder, const std::string& result) {
  check_not_being_written(folder);
  CHECK(fs::exists(folder / result),
        "{}: is not finished ({} there); repeat the command that makes it, which continues", printable(folder.string()),
        counted_are(StoredUnits(folder, Json()).names().size(), "unit"));
  const fs::path file = folder / manifest_name;
  if (!fs::exists(file)) return no_checksum_beside(result);
  const auto digests = read_manifest_of_store(file);
  for (const std::string& name : files_to_list(folder, result))
    CHECK(digests.contains(name), "{}: does not list {}; {}", printable(file.string()), printable(name, 100),
          write_manifest_again);
  const bool has_units = fs::is_directory(folder / units_folder);
  for (const auto& [name, digest] : digests)
    if (has_units || !name.starts_with(units_folder)) prove_file(folder, name, digest);
  return {};
}

void check_form(const Json& result, const ResultForm& form) {
  CHECK(result.at("format") == form.format && result.at("version") == form.version, "another format or version");
  CHECK(result.at("request").is_object(), "its request is no object");
}

}  // namespace gainlens::runfile
