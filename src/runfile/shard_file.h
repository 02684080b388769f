#pragma once

#include "runfile/hdf5.h"
#include "runfile/request.h"
#include "runfile/schema.h"
#include "runfile/shard.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace gainlens::runfile {

/// "T512-S0.h5".
std::string shard_file_name(const ShardKey& key);
/// The inverse; empty for any other name.
std::optional<ShardKey> parse_shard_file_name(const std::string& name);

/// How the entries of a dataset are stored: numbers as IEEE little-endian float64 or float32.
hid_t stored_type(const DatasetInfo& info, const Request& request);
/// Type, shape and chunks of a dataset in a shard; what was not written is NaN, -1 or "".
hdf5::Layout shard_layout(const DatasetInfo& info, const Request& request, std::int64_t length);

/// More text than this is not read from one dataset.
inline constexpr std::uint64_t max_text_bytes = 64u << 20;

/// Writes one shard, flushes it and reads it back from the disk. After a failure the caller must remove what is at
/// `path`.
/// @throws RunFailed  a write, a flush or a closing failed, or the numbers read back differ from those written
void write_shard(const std::filesystem::path& path, const Request& request, const ShardKey& key,
                 const ShardResult& result);

/// Opens a shard. Proves that it has this key and request, and that every dataset has its shape.
/// @throws hdf5::Error  the proof fails
hdf5::Handle open_shard(const std::filesystem::path& path, const Request& request, const ShardKey& key);

/// A dataset of an opened shard.
hdf5::Handle open_shard_dataset(const hdf5::Handle& shard, const DatasetInfo& info, const Request& request,
                                std::int64_t length);

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
