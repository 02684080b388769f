#include "interventions/kept_run.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "runfile/run_folder.h"

#include <system_error>

namespace gainlens::interventions {
namespace {

namespace fs = std::filesystem;

/// Refuses a folder whose run was asked for otherwise.
void check_same(const Json& stored, const Json& asked, const fs::path& folder) {
  if (stored == asked) return;
  const std::string where = printable(folder.string());
  CHECK(stored.is_object() && stored.value("format", Json()) == asked.at("format"),
        "--out: {} holds another run; give a new folder", where);
  for (const char* key : {"interventions", "model", "text", "clean", "corrupt", "length", "samples", "seed"})
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
  for (auto path = paths_.rbegin(); path != paths_.rend(); ++path) {
    fs::remove(*path, ignored);
    if (fs::exists(*path, ignored)) return;  // a folder that somebody else uses, or a unit whose writing failed late
  }
}

KeptRun::KeptRun(const fs::path& folder, const Json& request, const std::string& plan) : folder_(folder) {
  if (folder_.empty()) return;
  holds_run(request);  // before anything is written
  made_.note_missing(folder_);
  ensure_writable_folder(folder_);
  lock_.emplace(folder_);
  if (holds_run(request)) {  // it may have begun with another call, or in another process
    made_.keep();
  } else {
    for (const char* name : {"lock", "request.json", "interventions.json", "units"}) made_.note(folder_ / name);
    write_file_atomically(folder_ / "request.json", json_text(request, 2) + "\n");
  }
  if (!fs::exists(folder_ / "interventions.json")) write_file_atomically(folder_ / "interventions.json", plan);
  make_folder(folder_ / "units");
}

/// Whether the folder holds the run of this request.
/// @throws InvalidArgument  it holds something else
bool KeptRun::holds_run(const Json& request) const {
  runfile::check_empty_or_run(folder_);
  if (!fs::exists(folder_ / "request.json")) return false;
  check_same(read_json_file(folder_ / "request.json"), request, folder_);
  return true;
}

}  // namespace gainlens::interventions
