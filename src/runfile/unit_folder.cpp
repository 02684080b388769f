#include "runfile/unit_folder.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/listener.h"
#include "runfile/run_folder.h"

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

}  // namespace

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

UnitFolder::UnitFolder(fs::path path, const Json& request, const std::vector<std::string>& named,
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

bool UnitFolder::holds_run(const Json& request, const std::vector<std::string>& named) const {
  check_empty_or_run(path_);
  if (!fs::exists(path_ / "request.json")) return false;
  check_same(read_json_file(path_ / "request.json"), request, path_, named);
  return true;
}

void UnitFolder::tell_of_stored() const {
  const std::size_t stored = path_.empty() ? 0 : units_.names().size();
  if (stored > 0)
    tell_note("{}: {} by an earlier call; this one continues", printable(path_.string()),
              stored == 1 ? "1 unit was measured" : fmt::format("{} units were measured", stored));
}

void UnitFolder::keep_unit(std::string_view name, const Json& unit) {
  if (path_.empty()) return;
  write_file_atomically(units_.file(name), units_.text(name, unit));
  made_.keep();
}

}  // namespace gainlens::runfile
