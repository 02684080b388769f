#pragma once

#include "runfile/shard.h"

#include <filesystem>
#include <map>
#include <string>

namespace gainlens::runfile {

/// The checksums in a manifest.jsonl, which is left as it is. A torn last line counts as not written.
/// @throws InvalidArgument  it cannot be read, or an earlier line is not valid
std::map<ShardKey, std::string> read_manifest(const std::filesystem::path& path);

/// manifest.jsonl: a line {"length", "sample", "sha256"} for each finished shard, in the order they were finished until
/// the run is combined, then by length and sample. Of two lines of one shard the later counts.
class Manifest {
 public:
  /// Reads it, or makes an empty one. A torn last line (the process was killed while writing it) is dropped.
  /// @throws InvalidArgument  an earlier line is not valid
  explicit Manifest(std::filesystem::path path);

  const std::map<ShardKey, std::string>& digests() const { return digests_; }
  /// Adds a line and flushes it to the disk. @throws RunFailed  disk full
  void append(const ShardKey& key, const std::string& sha256);
  /// One line a shard, by length and sample: how often the run was interrupted, and who computed what, no longer shows.
  /// Writes only what would change. @throws RunFailed disk full
  void put_in_order();

 private:
  std::filesystem::path path_;
  std::map<ShardKey, std::string> digests_;
};

}  // namespace gainlens::runfile
