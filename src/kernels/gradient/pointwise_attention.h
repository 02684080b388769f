#pragma once

#include "kernels/gradient/dropout.h"
#include "kernels/gradient/packed_attention.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

// The attention of HSTU (Zhai et al., 2024): weights that are a function of their own score alone, without a softmax.
// They may be negative, and do not sum to one.

namespace gainlens::kernels {

/// Width of a time bucket, in units of ln(seconds). Source: generative-recommenders,
/// research/modeling/sequential/hstu.py.
inline constexpr double time_bucket_width = 0.301;

struct PointwiseAttentionOptions {
  double scale = 0;   ///< factor on q.k; 0 means 1/sqrt(head_dim)
  double length = 1;  ///< n, the constant by which all weights are divided
  /// Of the weights; rows and columns as in PackedAttentionOptions.
  Dropout dropout;
  /// [places]: entry m is added to the score of a key m places before the query. A gradient flows to it. No sequence is
  /// longer.
  at::Tensor place_bias;
  /// [buckets]: entry min(floor(ln(max(|t_query - t_key|, 1)) / 0.301), buckets - 1) is added to a score. A gradient
  /// flows to it. Undefined: none.
  at::Tensor time_bias = {};
  /// float64 [position], in seconds; read with `time_bias`.
  at::Tensor query_times = {}, key_times = {};
  /// [position] and [1] or [head]: the log of a factor on the key, and that of a factor for each place of distance.
  /// Both have a gradient, and may be undefined.
  at::Tensor key_bias = {}, distance_slope = {};
  /// Whether these factors multiply the weight. Else their logs are added to the score, before SiLU.
  bool multiplicative = false;
  /// Least |sum w| in the moments, as a share of sum |w|: see bft::EstimatorOptions.
  double min_weight_share = 1e-6;
  /// As in PackedAttentionOptions.
  bool last_queries = false;
};

/// Causal attention of each packed sequence to itself: with s = scale q.k + biases, w = SiLU(s) / n times the factors,
/// sum over the keys of dropout(w) v.
/// @param query, key, value  [position, head, head_dim]
/// @param begin  ascending from 0 to the number of positions
/// @returns [position, head, head_dim]
/// @throws InternalError  shapes or bounds that do not fit
at::Tensor pointwise_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                               const PackedBounds& begin, const PointwiseAttentionOptions& options);

/// Attention with the variance of its mean. Both have gradients.
struct PointwiseMoments {
  at::Tensor output;  ///< [position, head, head_dim]: as pointwise_attention()
  /// [position, head, head_dim]: with the mean c = sum w v / sum w, sum w^2 (v - c)^2 / (sum w)^2, of the weights
  /// before dropout. The sum of the weights is raised as `min_weight_share` says.
  at::Tensor variance;
  /// [position, head] |sum w| / sum |w|, without a gradient; 1 where all weights have one sign. Below
  /// `min_weight_share` the sum was raised. 0 where all weights are 0; the variance is NaN there.
  at::Tensor balance;
};

PointwiseMoments pointwise_attention_moments(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                             const PackedBounds& begin, const PointwiseAttentionOptions& options);

/// The weights before dropout of a batch of sequences of one length.
/// @param batch  number of sequences
/// @returns [sequence, head, query, key], 0 at hidden keys
at::Tensor pointwise_pattern(const at::Tensor& query, const at::Tensor& key, const PackedBounds& begin,
                             const PointwiseAttentionOptions& options);
/// The moments of such weights, and of values [position, head, head_dim], without dropout.
PointwiseMoments pointwise_moments_of(const at::Tensor& pattern, const at::Tensor& value, const PackedBounds& begin,
                                      double min_weight_share);

}  // namespace gainlens::kernels
