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

/// How numbers of a request are stored: IEEE little-endian float64 or float32.
hid_t number_type(const Request& request);

/// Writes one shard whole, flushes it and reads it back from the disk. What a failure leaves at `path` is for the
/// caller to remove.
/// @throws RunFailed  a write, a flush or a closing failed, or the numbers that were read are not those that were
///     written
void write_shard(const std::filesystem::path& path, const Request& request, const ShardKey& key,
                 const ShardResult& result);

/// Opens a shard and proves that it is the one of this key and request, with every dataset in its shape.
/// @throws hdf5::Error  it is not
hdf5::Handle open_shard(const std::filesystem::path& path, const Request& request, const ShardKey& key);

/// A dataset of an opened shard.
hdf5::Handle open_shard_dataset(const hdf5::Handle& shard, const DatasetInfo& info, const Request& request,
                                std::int64_t length);

}  // namespace gainlens::runfile
