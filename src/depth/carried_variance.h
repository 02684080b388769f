#pragma once

#include "models/decoder/decoder_config.h"
#include "models/decoder/decoder_weights.h"
#include "runfile/depth_run.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

// The steps that carry the variance P = 1 / lambda of the residual stream through one layer. Everything is float64.
// Source: docs/analyses/depth.md; the paper, eq. (3) [eq:update], (8) [eq:delta] and (9) [eq:process-noise].

namespace gainlens::depth {

/// What a forward pass shows of one layer at the queries that are measured.
struct LayerReading {
  at::Tensor n_eff;           ///< [query, head]
  at::Tensor residual;        ///< [query, head, value_dim] S
  at::Tensor value_variance;  ///< [kv_head, value_dim] sv^2 over the positions of the chunk
  at::Tensor estimate;        ///< [query, head, value_dim] e
  at::Tensor gate;            ///< [query, head] or [query, head, value_dim]; undefined without gates
  at::Tensor middle;          ///< [query, width] the stream that the MLP reads
};

/// Whether a variance can be carried through the first layers of such a decoder.
/// @param layers  that run
/// @throws InvalidArgument  names the part, or the layers, through which no rule is known
void check_carries(const models::DecoderConfig& config, std::int64_t layers, const std::string& where);

/// V of the estimates by the conjugate form of REML, (n S + sv^2) / n^2, with one observation of the variance of the
/// values as its prior (bft::reml_conjugate_variance with nu = 1).
/// @returns [query, head, value_dim]
at::Tensor estimate_variance(const LayerReading& reading);

/// Variance of what attention adds to the stream, [query, width].
struct ObservedVariance {
  at::Tensor independent;  ///< O = (W_O .* W_O)(g^2 .* V): heads and dimensions err independently
  at::Tensor bound;        ///< (|W_O| (g .* sqrt V))^2: all err together; heads of a KV group read the same values
};
/// @param weights  of the layer, in float64
ObservedVariance observed_variance(const models::DecoderConfig& config, const models::LayerWeights& weights,
                                   const LayerReading& reading);

/// K = P / (P + O).
/// @throws RunFailed  P + O is 0 somewhere (names the layer): K is not defined
at::Tensor gain(const at::Tensor& variance, const at::Tensor& observed, std::int64_t layer);

/// P' after attention.
at::Tensor updated(const at::Tensor& variance, const at::Tensor& observed, runfile::DepthReading reading);

/// max((1 + J)^2, 0.01): P'' = stretch P' after the MLP.
at::Tensor stretch(const at::Tensor& jacobian);

/// The quantiles at runfile::depth_shares, over all elements.
runfile::DepthQuantiles quantiles_of(const at::Tensor& values);

}  // namespace gainlens::depth
