#include "runfile/unit_folder.h"

#include "core/atomic_file.h"
#include "core/check.h"
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
    CHECK(stored.value(key, Json()) == asked.at(key), "--out: {} holds a run with other {}; give a new folder", where,
          key);
  for (const auto& [key, value] : asked.items())
    CHECK(stored.value(key, Json()) == value, "--out: {} holds a run with another {}; give a new folder", where, key);
  throw_invalid("--out: {} holds a run of a newer version; give a new folder", where);
}

}  // namespace

UnitFolder::UnitFolder(fs::path path, const Json& request, const std::vector<std::string>& named)
    : path_(std::move(path)) {
  if (path_.empty()) return;
  existed_ = fs::exists(path_);
  holds_run(request, named);  // before anything is written
  ensure_writable_folder(path_);
  lock_.emplace(path_);
  fresh_ = !holds_run(request, named);  // another process may have begun one
  if (fresh_) write_file_atomically(path_ / "request.json", json_text(request, 2) + "\n");
  make_folder(path_ / "units");
}

UnitFolder::~UnitFolder() {
  if (!fresh_) return;
  std::error_code ignored;
  fs::remove(path_ / "units", ignored);              // only if it is empty
  if (fs::exists(path_ / "units", ignored)) return;  // a unit whose writing failed late: the run can go on
  for (const char* name : {"request.json", "lock"}) fs::remove(path_ / name, ignored);
  if (!existed_) fs::remove(path_, ignored);
}

bool UnitFolder::holds_run(const Json& request, const std::vector<std::string>& named) const {
  check_empty_or_run(path_);
  if (!fs::exists(path_ / "request.json")) return false;
  check_same(read_json_file(path_ / "request.json"), request, path_, named);
  return true;
}

fs::path UnitFolder::unit_file(std::string_view name) const {
  return path_ / "units" / fmt::format("{}.json", name);
}

std::optional<Json> UnitFolder::unit(std::string_view name) const {
  if (path_.empty() || !fs::exists(unit_file(name))) return std::nullopt;
  return read_json_file(unit_file(name));
}

void UnitFolder::keep_unit(std::string_view name, const Json& unit) {
  if (path_.empty()) return;
  write_file_atomically(unit_file(name), json_text(unit) + "\n");
  fresh_ = false;
}

}  // namespace gainlens::runfile
