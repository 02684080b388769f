#pragma once

#include "core/json.h"

#include <filesystem>
#include <string>

namespace gainlens::runfile {

/// SHA-256 of large files, each hashed once: an entry counts while path, size, modification time and inode are the
/// same. Kept in the run folder's log.json, so that a resumed sweep does not read its weights twice:
///
///     HashCache cache = HashCache::of_run(out);        // before the request can be made
///     request.model[name] = cache.sha256(weights);
///     auto run = RunFolder::open_or_resume(out, request);
///     run.remember(cache);
class HashCache {
 public:
  HashCache() = default;
  /// The cache of a run folder; empty where there is no run yet.
  /// @throws InvalidArgument  log.json is damaged
  static HashCache of_run(const std::filesystem::path& folder);
  /// Entries of another shape are left out: they are hashed again.
  static HashCache from_json(const Json& json);
  Json to_json() const;

  /// 64 hex digits. @throws InvalidArgument  the file cannot be read, or changes while it is read
  std::string sha256(const std::filesystem::path& file);

 private:
  Json entries_ = Json::object();  // absolute path -> {size, mtime_ns, inode, sha256}
};

}  // namespace gainlens::runfile
