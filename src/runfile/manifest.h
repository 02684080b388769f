#pragma once

#include "runfile/request.h"
#include "runfile/shard.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace gainlens::runfile {

/// Reads the checksums in a manifest.jsonl; does not change the file. An incomplete last line is ignored.
/// @throws InvalidArgument  it cannot be read, or an earlier line is not valid
std::map<ShardKey, std::string> read_manifest(const std::filesystem::path& path);

/// @param digests  of the manifest at `path`
/// @throws InvalidArgument  it lists a chunk that is not one of the request: a line was changed
void check_listed(const std::map<ShardKey, std::string>& digests, const Request& request,
                  const std::filesystem::path& path);

/// manifest.jsonl: one line {"length", "sample", "sha256"} for each finished shard, in the order of finishing. When the
/// run is combined, the lines are sorted by length and sample. If a shard has two lines, the later one counts.
class Manifest {
 public:
  /// Reads the file, or makes an empty one. An incomplete last line (the process was killed while writing it) is
  /// removed.
  /// @throws InvalidArgument  an earlier line is not valid
  explicit Manifest(std::filesystem::path path);

  const std::map<ShardKey, std::string>& digests() const { return digests_; }
  /// Adds a line and flushes it to the disk. @throws RunFailed  disk full
  void append(const ShardKey& key, const std::string& sha256);
  /// Rewrites the file with one line for each shard, sorted by length and sample. Then it does not depend on
  /// interruptions or on which process computed which shard. Writes nothing if the file is so already.
  /// @throws RunFailed  disk full
  void put_in_order();

 private:
  std::filesystem::path path_;
  std::map<ShardKey, std::string> digests_;
};

}  // namespace gainlens::runfile
