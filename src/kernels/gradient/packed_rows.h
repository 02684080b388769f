#pragma once

#include <cstdint>

// Vector code of packed_attention.h, in float32 (Highway, which chooses the instruction set at run time).

namespace gainlens::kernels {

/// Rows of one head: row i begins at data + i stride and has `dims` numbers.
struct HeadRows {
  const float* data;
  std::int64_t stride;
};
struct HeadGradients {
  float* data;
  std::int64_t stride;
};

/// One sequence of one head. The score of a key is scale q.k + key_bias[key] + distance_slope |query - key|.
struct PackedHead {
  HeadRows query, key, value;
  std::int64_t positions, dims;
  float scale;
  const float* key_bias = nullptr;  ///< [positions]; null: none
  float distance_slope = 0;
};

/// Gradients of the moments of one query, with what they need of the forward pass.
struct MomentGradients {
  const float* mean;      ///< [dims] sum P v, without dropout
  const float* residual;  ///< [dims] gradient of S
  float squares;          ///< gradient of sum P^2
};

struct PackedRows {
  /// Weights of one query, the softmax of its scores, over its keys 0 to keys - 1.
  /// @param weights  [keys, filled up to whole vectors], aligned
  void (*weights)(const PackedHead& head, std::int64_t query, std::int64_t keys, float* weights);

  /// to = sum over the keys of weights[j] values[j].
  void (*mix)(const PackedHead& head, std::int64_t keys, const float* weights, float* to);

  /// residual = sum over the keys of weights[j] (values[j] - mean)^2: no difference of large sums.
  /// @returns sum of weights[j]^2
  float (*moments)(const PackedHead& head, std::int64_t keys, const float* weights, const float* mean, float* residual);

  /// The gradients of one query. With P the weights, F the factors of dropout, g the gradient of the output, m the mean
  /// and g_S, g_2 the gradients of S and sum P^2: a_j = F_j g.v_j + g_S.(v_j - m)^2 + 2 g_2 P_j, dS_j = P_j (a_j - sum
  /// P a), dQ = scale dS K, dK_j += scale dS_j q, dV_j += P_j (F_j g + 2 g_S (v_j - m)).
  /// @param weights   [keys], as from `weights`
  /// @param factors   [keys]
  /// @param gradient  [dims], of the output
  /// @param moments   null: they have no gradient
  /// @param score_gradients  [keys, filled up to whole vectors], aligned: gets dS
  void (*gradients)(const PackedHead& head, std::int64_t query, std::int64_t keys, const float* weights,
                    const float* factors, const float* gradient, const MomentGradients* moments, float* score_gradients,
                    float* query_gradient, HeadGradients key_gradients, HeadGradients value_gradients);
};

/// The table for the best instruction set of this machine.
const PackedRows& packed_rows();

}  // namespace gainlens::kernels
