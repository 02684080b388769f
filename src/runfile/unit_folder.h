#pragma once

#include "core/json.h"
#include "runfile/folder_lock.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::runfile {

/// The folder of a run that is stored as JSON: `request.json` says what determines the numbers, and `units` has one
/// file for each unit of work. A call continues what an earlier one with the same request has left. Holds the folder's
/// lock. A request that is refused before any unit was measured leaves nothing behind.
class UnitFolder {
 public:
  /// @param path     empty: nothing is kept
  /// @param request  has "format"
  /// @param named    keys whose difference is named first, in this order
  /// @throws InvalidArgument  the folder holds something else or another request (names the key), is locked by another
  ///     process, or cannot be written to
  UnitFolder(std::filesystem::path path, const Json& request, const std::vector<std::string>& named);
  UnitFolder(const UnitFolder&) = delete;
  UnitFolder& operator=(const UnitFolder&) = delete;
  ~UnitFolder();

  /// A unit that an earlier call has computed. @throws InvalidArgument  the file is no JSON
  std::optional<Json> unit(std::string_view name) const;
  /// The file of a unit, for messages.
  std::filesystem::path unit_file(std::string_view name) const;
  /// Stores a unit completely or not at all. @throws RunFailed  disk full
  void keep_unit(std::string_view name, const Json& unit);
  /// Where the files of the run lie; empty: nothing is kept.
  const std::filesystem::path& path() const { return path_; }

 private:
  /// Whether the folder holds the run of this request. @throws InvalidArgument  it holds something else
  bool holds_run(const Json& request, const std::vector<std::string>& named) const;

  std::filesystem::path path_;
  bool existed_ = false;
  bool fresh_ = false;  // made by this call, and without a unit
  std::optional<FolderLock> lock_;
};

}  // namespace gainlens::runfile
