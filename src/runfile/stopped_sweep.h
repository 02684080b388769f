#pragma once

#include "runfile/run_proof.h"
#include "runfile/run_reader.h"

#include <filesystem>
#include <optional>

namespace gainlens::runfile {

/// The finished chunks of a sweep that was stopped before it wrote run.h5, as a run.
struct StoppedSweep {
  RunProof proof;  ///< of the shards; `unproven` says how many chunks are there, and how to go on
  RunReader reader;
};

/// Makes a run.h5 from the shards in a temporary folder, and reads it. The run folder stays as it is.
/// @returns  nothing: no sweep that was stopped, or none of its chunks is there
/// @throws InvalidArgument  as prove_run() and RunReader::open()
/// @throws RunFailed        no room for temporary files
std::optional<StoppedSweep> open_stopped_sweep(const std::filesystem::path& folder);

}  // namespace gainlens::runfile
