#pragma once

#include "hooks/hooked_model.h"
#include "models/decoder/attention_ops.h"
#include "models/decoder/decoder.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace gainlens::interventions {

/// What stands at the gate of one layer, while a pass runs.
struct GateSite {
  std::int64_t layer = 0;
  kernels::QueryStatistics statistics;  ///< of this pass: n_eff, first_mass, lambda_obs by dimension
  at::Tensor result;                    ///< [head, query, dimension] of attention, before a gate
  at::Tensor gate;                      ///< [head, query, G] float64; undefined without gates
};

/// Layers with softmax attention.
std::vector<std::int64_t> softmax_layers(const models::DecoderConfig& config);

/// Sees every gate, or writes it.
/// @returns [head, query, G] float64, to be written: gates, or factors of attention's result where the model has none;
///     undefined: everything stays as it is, bit for bit
using AtGate = std::function<at::Tensor(const GateSite&)>;

/// Runs a model over one document. lambda_obs and n_eff of each layer come from the streaming statistics of this same
/// pass, so those of later layers follow what was written in earlier ones.
/// @param writes  whether `at_gate` may return a defined tensor
/// @returns the stream after the final norm, [1, position, width]
/// @throws RunFailed  as Decoder::forward; lambda_obs is not finite or not above 0
at::Tensor run_gate_pass(models::Decoder& model, const std::vector<std::int32_t>& tokens, bool writes,
                         const AtGate& at_gate);

}  // namespace gainlens::interventions
