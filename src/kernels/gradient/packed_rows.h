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

/// One sequence of one head.
struct PackedHead {
  HeadRows query, key, value;
  std::int64_t positions, dims;
  float scale;
};

struct PackedRows {
  /// Weights of one query, softmax(scale q.k), over its keys 0 to keys - 1.
  /// @param weights  [keys, filled up to whole vectors], aligned
  void (*weights)(const PackedHead& head, std::int64_t query, std::int64_t keys, float* weights);

  /// to = sum over the keys of weights[j] values[j].
  void (*mix)(const PackedHead& head, std::int64_t keys, const float* weights, float* to);

  /// The gradients of one query. With P the weights, F the factors of dropout, and g the gradient of the output:
  /// a_j = F_j g.v_j, dS_j = P_j (a_j - sum P a), dQ = scale dS K, dK_j += scale dS_j q, dV_j += P_j F_j g.
  /// @param weights   [keys], as from `weights`
  /// @param factors   [keys]
  /// @param gradient  [dims], of the output
  /// @param room      [keys, filled up to whole vectors], aligned
  void (*gradients)(const PackedHead& head, std::int64_t query, std::int64_t keys, const float* weights,
                    const float* factors, const float* gradient, float* room, float* of_query, HeadGradients of_key,
                    HeadGradients of_value);
};

/// For the best instruction set of this machine.
const PackedRows& packed_rows();

}  // namespace gainlens::kernels
