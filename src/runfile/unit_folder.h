#pragma once

#include "core/json.h"
#include "runfile/folder_lock.h"
#include "runfile/stored_units.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::runfile {

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

/// The folder of a run that is stored as JSON: `request.json` says what determines the numbers, and `units` has one
/// file for each unit of work. A call continues what an earlier one with the same request has left. Holds the folder's
/// lock. A call that is refused before there is any unit leaves no file and no folder behind.
class UnitFolder {
 public:
  /// @param path     empty: nothing is kept
  /// @param request  has "format"
  /// @param named    keys whose difference is named first, in this order
  /// @param files    others that the run has from its begin: content by name
  /// @throws InvalidArgument  the folder holds something else or another request (names the key), is locked by another
  ///     process, or cannot be written to
  UnitFolder(std::filesystem::path path, const Json& request, const std::vector<std::string>& named,
             const std::map<std::string, std::string>& files = {});

  /// A unit that an earlier call has computed, made from its JSON by `read`; nothing: it is not there.
  /// @throws InvalidArgument  as StoredUnits::read()
  template <typename Read>
  auto unit(std::string_view name, const Read& read) const {
    using Unit = decltype(units_.read(name, read));
    return has_unit(name) ? std::optional<Unit>(units_.read(name, read)) : std::nullopt;
  }
  /// Whether an earlier call has computed the unit.
  bool has_unit(std::string_view name) const { return !path_.empty() && units_.has(name); }
  /// Stores a unit completely or not at all. @throws RunFailed  disk full
  void keep_unit(std::string_view name, const Json& unit);
  /// Tells the listener how many units are there from an earlier call, if there are any.
  void tell_of_stored() const;
  /// Where the files of the run lie; empty: nothing is kept.
  const std::filesystem::path& path() const { return path_; }

 private:
  /// Whether the folder holds the run of this request. @throws InvalidArgument  it holds something else
  bool holds_run(const Json& request, const std::vector<std::string>& named) const;

  std::filesystem::path path_;
  StoredUnits units_;
  std::optional<FolderLock> lock_;
  Scaffold made_;  // goes before the lock
};

}  // namespace gainlens::runfile
