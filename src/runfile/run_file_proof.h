#pragma once

#include "runfile/request.h"
#include "runfile/shard.h"

#include <filesystem>
#include <map>

namespace gainlens::runfile {

/// Reads back what write_run_file has written, and holds it against the shards: every number bit for bit, and request,
/// coordinates, mask, units, meanings and dimension scales. For the moment before its checksum is stored, from which on
/// the file is trusted. At most two datasets of one shard are in memory.
/// @param path  the file, written and closed
/// @throws RunFailed  it holds something else (the first such place is named), or cannot be read
void prove_run_file(const std::filesystem::path& path, const Request& request,
                    const std::map<ShardKey, std::filesystem::path>& shards);

}  // namespace gainlens::runfile
