#pragma once

#include "core/environment.h"
#include "core/json.h"

#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::runfile {

/// SHA-256 of large files. A file is hashed once for each user, not once for each run: the checksums are kept in
/// `checksums.json` in a folder of the user.
///
///     const HashCache cache = HashCache::for_user();
///     request.model[name] = cache.sha256(weights);
///
/// A stored checksum is used while path, size, modification time, time of the last change (ctime), inode and device of
/// the file stay the same. It is not stored if the file was changed in the last two seconds.
///
/// What is trusted: a wrong checksum in the cache would become the checksum in a run. The cache is therefore used only
/// if its folder belongs to this user and nobody else may write it. The cache cannot see a change of the file that
/// leaves its times as they were, such as writing to the disk below the file system. If you doubt a checksum, delete
/// the folder: this costs only time.
///
/// Several processes may use one cache at the same time. A cache that is damaged, cannot be read or cannot be written
/// is no error: the file is hashed.
class HashCache {
 public:
  using Clock = std::function<std::time_t()>;

  /// The cache in `$XDG_CACHE_HOME/gainlens`, or in `$HOME/.cache/gainlens` if XDG_CACHE_HOME is not set. A path that
  /// is not absolute counts as not set. If both are not set, nothing is kept.
  static HashCache for_user(const Environment& environment = process_environment());

  /// @param folder  is made if only its last two parts are missing; empty: nothing is kept
  /// @param clock   the present time
  explicit HashCache(
      std::optional<std::filesystem::path> folder, Clock clock = [] { return std::time(nullptr); });

  /// 64 hex digits. @throws InvalidArgument  the file cannot be read, or changes while it is read
  std::string sha256(const std::filesystem::path& file) const;
  /// Those of the files of a checkpoint, by name without folder: what a request says of a model.
  std::map<std::string, std::string> sha256_by_name(const std::vector<std::filesystem::path>& files) const;

  /// Most files whose checksums are kept. Those that were hashed first are dropped first.
  static constexpr std::size_t max_files = 1000;

 private:
  void store(const std::string& path, Json entry) const;

  std::optional<std::filesystem::path> folder_;
  Clock clock_;
};

}  // namespace gainlens::runfile
