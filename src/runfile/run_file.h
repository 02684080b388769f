#pragma once

#include "runfile/hdf5.h"
#include "runfile/request.h"
#include "runfile/schema.h"
#include "runfile/shard.h"

#include <filesystem>
#include <map>

namespace gainlens::runfile {

inline constexpr const char* run_file_name = "run.h5";

/// The dataset of a run: its type, shape and chunks.
hdf5::Layout run_layout(const DatasetInfo& info, const Request& request, std::int64_t length);

/// Writes run.h5 as a pure function of the request and the shards: no times, no paths, one order of calls. At most one
/// shard's dataset is in memory. The file is flushed to the disk; what a failure leaves at `path` is for the caller to
/// remove.
/// @param shards  files of the keys that are done; the others stay NaN, with /complete 0
/// @throws RunFailed        a write, a flush or a closing failed
/// @throws InvalidArgument  a shard cannot be read
void write_run_file(const std::filesystem::path& path, const Request& request,
                    const std::map<ShardKey, std::filesystem::path>& shards);

}  // namespace gainlens::runfile
