#pragma once

#include <cstdint>

namespace gainlens::kernels {

/// The type of queries and keys in the fused kernel. float32 is computed without tensor cores: slow, for checking.
enum class FusedElement { bfloat16, float16, float32 };

/// Where the scalar fields are written, each [head, position]. Null: not wanted.
struct FusedFields {
  float* n_eff;
  float* entropy;
  float* residual;
  float* observation_precision;
  float* log_observation_precision;
  float* kalman_gain;
  float* kalman_gain_scaled;
  float* without_first_n_eff;
  float* without_first_residual;
  float* without_first_observation_precision;
  float* without_first_kalman_gain;
  float* without_first_norm;
  float* estimate_norm;
  float* gained_estimate_norm;
  float* sink_logit_mass;
  float* first_weight;
};

/// The arguments of one launch. Pointers are valid on the device that runs it. Rows of `width` values are zero after
/// head_dim and start at multiples of 16 bytes.
struct FusedArguments {
  FusedElement element;
  int width;  ///< 64, 128 or 256: head_dim rounded up
  int head_dim;
  int heads, group, length;
  int first_query, end_query;  ///< the queries [first_query, end_query) are computed, others are not written

  const void* query;  ///< [head, position, width], element
  const void* key;    ///< [kv_head, position, width], element
  /// [kv_head, position, width] u = (v - c) / unit: float32 if `element` is float32, else bfloat16
  const void* centred;
  const float* centre;            ///< [kv_head, width] c
  const float* unit;              ///< [kv_head, width] powers of two
  const float* size;              ///< [kv_head] powers of two: the units in which norms are computed
  const float* first_offset;      ///< [kv_head, width] (v_0 - c) / unit
  const float* inverse_variance;  ///< [kv_head, width] unit^2 / sv^2 or 0; null: not wanted

  float scale;
  float soft_cap;  ///< 0: no soft cap
  bool causal;
  int window;             ///< 0: no window
  const float* key_bias;  ///< [head or 1, position]; null: no bias
  const float* distance_bias;
  std::int64_t key_bias_stride, distance_bias_stride;  ///< from one head to the next; 0: all heads share one row
  const float* sink_logit;                             ///< [head]; null: no sink logit

  float prior_strength;    ///< nu
  float prior_total;       ///< nu sigma0^2
  float prior_precision;   ///< lambda
  const float* precision;  ///< lambda as [head, position, head_dim] by the strides below; null: prior_precision for all
  std::int64_t precision_strides[3];

  FusedFields fields;
  void* output;       ///< [head, position, head_dim], element; null: not wanted
  float* first_mass;  ///< [head, position, first_masses]; null: not wanted
  int first_masses;
  float* residual_by_dimension;  ///< [head, position, head_dim]; null: not wanted
  float* precision_by_dimension;

  /// Memory for sums that need more digits than float32 has: fused_scratch_doubles() for each thread block. Null: no
  /// query sees more than fused_chain_keys keys.
  double* scratch;
};

/// Query rows of one thread block, 16 for each warp.
inline constexpr int fused_rows = 64;

/// Products with values are summed in float32 over this many keys (in whole tiles, at least one) before they are added
/// to sums in float64. A tensor core adds sixteen products at a time.
constexpr int fused_chain_keys(FusedElement element) {
  return element == FusedElement::float32 ? 16 : 256;
}

/// Number of thread blocks of one launch: for each head, one for every fused_rows queries.
inline std::int64_t fused_blocks(const FusedArguments& in) {
  return static_cast<std::int64_t>(in.heads) * ((in.end_query - in.first_query + fused_rows - 1) / fused_rows);
}

/// Doubles that one thread block needs: sum p u and sum p u^2 of its rows.
constexpr std::int64_t fused_scratch_doubles(int width) {
  return std::int64_t{2} * fused_rows * width;
}

/// Starts the kernel on a CUDA stream of the current device.
/// @returns  null on success, else what went wrong
const char* launch_fused(const FusedArguments& in, void* stream);

}  // namespace gainlens::kernels
