#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace gainlens::runfile {

/// What has been shown of a run's files before its numbers are read.
struct RunProof {
  std::size_t shards = 0;  ///< chunks whose shard has the checksum that manifest.jsonl gives it
  std::string gap;         ///< a sentence on what could not be shown; empty where everything was
};

/// Proves a run folder without changing it: nobody is writing it, every shard that manifest.jsonl lists has its
/// checksum, and so has run.h5 (log.json keeps it). A run.h5 given as a file is taken as it is, with the gap named.
/// @param path  a run folder or a run.h5
/// @throws InvalidArgument  another process is writing the run; a file is missing or differs from its checksum (both
///     are named)
RunProof prove_run(const std::filesystem::path& path);

}  // namespace gainlens::runfile
