#pragma once

#include "core/json.h"

#include <filesystem>
#include <string>

namespace gainlens::runfile {

/// SHA-256 of large files. Each file is hashed once: an entry is valid while path, size, modification time and inode
/// stay the same. The cache is kept in log.json of the run folder, so a resumed sweep does not hash its weights again:
///
///     HashCache cache = HashCache::of_run(out);        // before the request is made
///     request.model[name] = cache.sha256(weights);
///     auto run = RunFolder::open_or_resume(out, request);
///     run.remember(cache);
class HashCache {
 public:
  HashCache() = default;
  /// The cache of a run folder; empty where there is no run yet.
  /// @throws InvalidArgument  log.json is damaged
  static HashCache of_run(const std::filesystem::path& folder);
  /// Leaves out malformed entries; their files are hashed again.
  static HashCache from_json(const Json& json);
  Json to_json() const;

  /// 64 hex digits. @throws InvalidArgument  the file cannot be read, or changes while it is read
  std::string sha256(const std::filesystem::path& file);

 private:
  Json entries_ = Json::object();  // absolute path -> {size, mtime_ns, inode, sha256}
};

}  // namespace gainlens::runfile
