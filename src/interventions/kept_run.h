#pragma once

#include "core/json.h"
#include "runfile/folder_lock.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::interventions {

/// Removes what it is told of when it goes, last first, up to a folder that is not empty.
class Scaffold {
 public:
  Scaffold() = default;
  Scaffold(const Scaffold&) = delete;
  Scaffold& operator=(const Scaffold&) = delete;
  ~Scaffold();
  /// Notes a folder and those of its parents that are not there.
  void note_missing(const std::filesystem::path& folder);
  void note(const std::filesystem::path& path) { paths_.push_back(path); }
  /// What was noted stays.
  void keep() { paths_.clear(); }

 private:
  std::vector<std::filesystem::path> paths_;
};

/// The folder of a run of `gainlens intervene`, or nothing. A call that is refused before it has kept anything leaves
/// no file and no folder behind.
class KeptRun {
 public:
  /// @param folder   empty: nothing is kept
  /// @param request  what determines the numbers
  /// @param plan     the content of interventions.json
  /// @throws InvalidArgument  the folder holds another run, or something else; another process writes it
  KeptRun(const std::filesystem::path& folder, const Json& request, const std::string& plan);

  bool exists() const { return !folder_.empty(); }
  const std::filesystem::path& folder() const { return folder_; }
  /// From now on the run can be continued: it holds a unit.
  void holds_unit() { made_.keep(); }

 private:
  bool holds_run(const Json& request) const;

  std::filesystem::path folder_;
  std::optional<runfile::FolderLock> lock_;
  Scaffold made_;  // goes before the lock
};

}  // namespace gainlens::interventions
