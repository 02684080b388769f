#pragma once

#include "core/attribution.h"
#include "interventions/arm_list.h"
#include "interventions/write.h"
#include "runfile/intervention_run.h"
#include "sweep/token_source.h"

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::interventions {

struct InterveneOptions {
  std::filesystem::path model;  ///< folder or GGUF file
  std::vector<std::string> ignored_config_keys;
  sweep::TokenSourceOptions source;   ///< its documents are what the interventions are measured on
  std::filesystem::path calibration;  ///< a text, or token ids where the source is ids; empty: none
  std::int64_t length = 0;            ///< tokens of a document, BOS included
  std::int64_t samples = 1;           ///< documents, and as many of calibration
  std::int64_t targets = 0;           ///< last tokens of a document whose losses count; 0: all but the first
  std::optional<IndexRange> target_positions = {};  ///< of the tokens whose losses count, in place of `targets`
  std::string answer, foil;  ///< tokens whose logits are compared at the last position (token_of()); empty: none
  std::string other_text;    ///< sha256 of a text that the test's may not be; empty: any
  std::vector<Intervention> given;
  EveryUnit every;
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;  ///< of kernels::compute_device()
  bool stream_weights = false;
  bool allow_extrapolation = false;
  std::uint64_t seed = 0;     ///< of controls and of the documents that are resampled from
  std::filesystem::path out;  ///< run folder; empty: nothing is kept
  bool quiet = false;
};

/// Measures every intervention on every document, against the model as it is. With a run folder it continues what an
/// earlier call with the same request has left.
/// @throws InvalidArgument  a wrong request, as place_arm(), DocumentPasses::run(), check_disjoint(), read_tokens() and
///     cut(); the folder holds another request
/// @throws RunFailed        as DocumentPasses::run(); disk full
runfile::InterventionRun run_interventions(const InterveneOptions& options);

/// Estimates every intervention by one backward pass of each document (GradientPass), and measures some exactly.
/// @pre  InterveneOptions::out is empty
/// @throws InvalidArgument  as above; InterveneOptions::stream_weights is set
Attribution approximate_interventions(const InterveneOptions& options);

}  // namespace gainlens::interventions
