#pragma once

#include "runfile/request.h"
#include "runfile/shard.h"

#include <filesystem>
#include <map>
#include <string_view>

namespace gainlens::runfile {

/// Reads back what write_run_file() has written and compares it with the shards: every number bit for bit, and request,
/// coordinates, mask, attributes and dimension scales. To be called before the checksum of the file is stored, because
/// the file is trusted from then on. At most two datasets of one shard are in memory.
/// @param path  the file, written and closed
/// @param program_version  as given to write_run_file()
/// @throws RunFailed  it holds something else (the message names the first place), or cannot be read
void prove_run_file(const std::filesystem::path& path, const Request& request,
                    const std::map<ShardKey, std::filesystem::path>& shards, std::string_view program_version = {});

}  // namespace gainlens::runfile
