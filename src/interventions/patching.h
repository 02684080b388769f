#pragma once

#include "core/attribution.h"
#include "interventions/prompts.h"
#include "interventions/write.h"
#include "runfile/patching_run.h"

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::interventions {

struct PatchingOptions {
  std::filesystem::path model;  ///< folder or GGUF file
  std::vector<std::string> ignored_config_keys;
  PromptOptions prompts;
  std::string answer, foil;  ///< tokens (token_of()); empty: the metric is the divergence from the clean run
  /// What to patch, all of Mode::patch. Empty: `hook_resid_pre` of each layer at each position, and each head at
  /// `attn.hook_z` over all positions.
  std::vector<Intervention> given;
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;  ///< of kernels::compute_device()
  bool stream_weights = false;
  bool allow_extrapolation = false;
  std::filesystem::path out;  ///< run folder; empty: nothing is kept
  bool quiet = false;
};

/// Activation patching in both directions: values of the clean run go into the corrupt one, and the other way round.
/// With a run folder it continues what an earlier call with the same request has left.
/// @throws InvalidArgument  as read_prompts(), answer_pair() and place_arm(); an intervention with another value; a
///     given patch that changes nothing; no patch changes anything; the folder holds another request
/// @throws RunFailed        as DocumentPasses::run(); disk full
runfile::PatchingRun run_patching(const PatchingOptions& options);

/// Estimates every patch by one backward pass in each direction (GradientPass), and measures some exactly.
/// @pre  PatchingOptions::out is empty
/// @returns  [PatchDirection], each with one document
/// @throws InvalidArgument  as above; PatchingOptions::stream_weights is set; no answer: the divergence from the
///     clean run has no slope at the clean run
std::vector<Attribution> approximate_patching(const PatchingOptions& options, std::uint64_t seed);

}  // namespace gainlens::interventions
