#pragma once

#include "interventions/gate_arm.h"
#include "runfile/gate_arms_run.h"
#include "sweep/token_source.h"

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::interventions {

struct GateArmsOptions {
  std::filesystem::path model;  ///< folder or GGUF file
  std::vector<std::string> ignored_config_keys;
  sweep::TokenSourceOptions source;    ///< of the documents that losses are measured on
  std::filesystem::path calibration;   ///< a text, or token ids where the source is ids
  std::int64_t trained_length = 0;     ///< tokens of a context that the model was trained with
  std::vector<std::int64_t> contexts;  ///< empty: half of it, it, twice it and four times it
  std::int64_t targets = 256;          ///< last tokens of a document, the same in each of its contexts
  std::int64_t documents = runfile::declared.fewest_documents;
  std::int64_t calibration_documents = runfile::declared.fewest_documents;
  bool few_documents = false;     ///< allow fewer than the plan declares
  std::vector<std::string> arms;  ///< names; empty: all that the model can have
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;  ///< of kernels::compute_device()
  bool stream_weights = false;
  std::uint64_t seed = 0;     ///< of the permutations
  std::filesystem::path out;  ///< run folder; empty: nothing is kept
  bool quiet = false;
};

/// Measures every arm in every context of every document. With a run folder it continues what an earlier call with the
/// same request has left.
/// @throws InvalidArgument  a wrong request, as gate_arms(), read_documents() and read_calibration(); a model without
///     softmax attention, with a Bayesian filter, or with learned positions that end before the longest context; the
///     folder holds another request
/// @throws RunFailed        as calibrate_gates() and read_gate_arm(); disk full
runfile::GateArmsRun run_gate_arms(const GateArmsOptions& options);

}  // namespace gainlens::interventions
