#pragma once

#include "runfile/coordinates.h"
#include "runfile/hdf5.h"
#include "runfile/request.h"
#include "runfile/run_file_name.h"
#include "runfile/schema.h"
#include "runfile/shard.h"

#include <filesystem>
#include <map>
#include <string_view>

namespace gainlens::runfile {

/// Raised when write_run_file() writes other bytes for the same request and shards, for example when an attribute is
/// added. Repeating the sweep command then makes run.h5 again from the shards. Readers do not look at it.
/// - Edition 2 added the coordinates and attributes of runfile/coordinates.h.
inline constexpr std::int64_t run_file_edition = 2;

/// The dataset of a run: its type, shape and chunks.
hdf5::Layout run_layout(const DatasetInfo& info, const Request& request, std::int64_t length);

/// Type and shape of a coordinate in a group; Group::summary also stands for the root.
hdf5::Layout coordinate_layout(const Coordinate& coordinate, const CoordinateValues& values, Group group,
                               const Request& request);

/// Writes run.h5. Its bytes depend only on the arguments and the contents of the shards: no times, no paths, a fixed
/// order of calls. At most one dataset of one shard is in memory. The file is flushed to disk. After a failure the
/// caller must remove what is at `path`.
/// @param shards  files of the finished chunks; the others stay NaN, with /complete 0
/// @param program_version  version of the program, stored in the file; empty: not known
/// @throws RunFailed        a write, a flush or a closing failed
/// @throws InvalidArgument  a shard cannot be read
void write_run_file(const std::filesystem::path& path, const Request& request,
                    const std::map<ShardKey, std::filesystem::path>& shards, std::string_view program_version = {});

/// Reads back what write_run_file() has written and compares it with the shards: every number bit for bit, and request,
/// coordinates, mask, attributes and dimension scales. To be called before the checksum of the file is stored, because
/// the file is trusted from then on. At most two datasets of one shard are in memory.
/// @param path  the file, written and closed
/// @param program_version  as given to write_run_file()
/// @throws RunFailed  it holds something else (the message names the first place), or cannot be read
void prove_run_file(const std::filesystem::path& path, const Request& request,
                    const std::map<ShardKey, std::filesystem::path>& shards, std::string_view program_version = {});

}  // namespace gainlens::runfile
