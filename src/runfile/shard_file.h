#pragma once

#include "runfile/hdf5.h"
#include "runfile/request.h"
#include "runfile/schema.h"
#include "runfile/shard.h"

#include <filesystem>
#include <optional>
#include <string>

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

}  // namespace gainlens::runfile
