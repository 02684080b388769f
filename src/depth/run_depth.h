#pragma once

#include "data/chunks.h"
#include "runfile/depth_run.h"

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace gainlens::depth {

/// What `gainlens sweep --depth-precision` adds to a finished sweep.
struct DepthRequest {
  std::filesystem::path checkpoint;
  std::vector<std::string> ignored_config_keys;
  at::ScalarType dtype = at::kFloat;  ///< of the forward passes; the rules are computed in float64
  bool stream_weights = false;
  bool allow_extrapolation = false;
  std::int64_t layers = 0;  ///< the first ones, which run
  std::span<const data::Chunk> chunks;
  std::filesystem::path folder;  ///< of the run, with its request.json
  bool quiet = false;
};

/// Measures every chunk and writes depth.json into the run folder. If the file is there and belongs to the request of
/// the sweep, nothing is computed. The drawn errors are measured on the first chunk of each length.
/// @throws InvalidArgument  as check_carries and models::load_decoder; depth.json is damaged
/// @throws RunFailed        as measure_depth; the disk is full
runfile::DepthRun run_depth(const DepthRequest& request);

}  // namespace gainlens::depth
