#pragma once

#include "kernels/gradient/packed_rows.h"

#include <cstdint>

// Vector code of pointwise_attention.h, in float32.

namespace gainlens::kernels {

/// The gradient of the variance of one query, with what it needs of the forward pass.
struct VarianceGradients {
  const float* shares;             ///< [keys] p = w / sum w
  const float* mean;               ///< [dims] e = sum p v
  const float* variance_gradient;  ///< [dims]
  float sum;                       ///< of the weights, raised where they cancel
  /// How far the sum moves with the weight of a key, times its sign: 0 if the sum was not raised, where it moves by 1.
  float raised_slope;
};

struct PointwiseRows {
  /// Weights of one query over its keys 0 to keys - 1: SiLU(scale q.k + added) factor / length.
  /// @param added    [keys, filled up to whole vectors], aligned
  /// @param factor   likewise; null: 1
  /// @param weights  likewise: 0 behind the keys
  /// @param slopes   likewise: derivatives of the weights by their scores
  void (*weights)(const PackedHead& head, std::int64_t query, std::int64_t keys, const float* added,
                  const float* factor, float length, float* weights, float* slopes);

  /// variance = sum over the keys of shares[j]^2 (values[j] - mean)^2: no difference of large sums.
  void (*variance)(const PackedHead& head, std::int64_t keys, const float* shares, const float* mean, float* variance);

  /// The gradients of one query. With w the weights, F the factors of dropout, g the gradient of the output, o the
  /// offsets v - e, V = sum p^2 o^2 with the gradient g_V, and m = sum p^2 o: b_j = sum over dimensions of
  /// g_V (2 p_j o_j^2 - 2 m v_j), dw_j = F_j g.v_j + (b_j - c_j sum b p) / sum w with c_j the slope of the sum,
  /// dv_j += F_j w_j g + g_V (2 p_j^2 o_j - 2 m p_j), ds_j = dw_j slopes[j], dq = scale ds k, dk_j += scale ds_j q.
  /// @param factors    [keys]
  /// @param gradient   [dims], of the output
  /// @param moments    null: the variance has no gradient
  /// @param weight_gradients  [keys] gets dw
  /// @param score_gradients   [keys] gets ds
  /// @param room       [dims]
  void (*gradients)(const PackedHead& head, std::int64_t query, std::int64_t keys, const float* weights,
                    const float* slopes, const float* factors, const float* gradient, const VarianceGradients* moments,
                    float* weight_gradients, float* score_gradients, float* room, float* query_gradient,
                    HeadGradients key_gradients, HeadGradients value_gradients);
};

/// The table for the best instruction set of this machine.
const PointwiseRows& pointwise_rows();

}  // namespace gainlens::kernels
