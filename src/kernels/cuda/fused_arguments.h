#pragma once

#include <cstdint>

namespace gainlens::kernels {

/// What the fused kernel reads its queries and keys as. float32 is computed without tensor cores: slow, for checking.
enum class FusedElement { bfloat16, float16, float32 };

/// Where the scalar fields go, each [head, position]; null: not wanted.
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
};

/// One launch. Pointers are of the device that runs it; rows of `width` values are zero behind head_dim and start at multiples of 16 bytes.
struct FusedArguments {
  FusedElement element;
  int width;  ///< 64, 128 or 256: head_dim rounded up
  int head_dim;
  int heads, group, length;
  int first_query;  ///< a multiple of fused_rows; earlier queries are left alone

  const void* query;              ///< [head, position, width], element
  const void* key;                ///< [kv_head, position, width], element
  const void* centred;            ///< [kv_head, position, width] v - c: bfloat16, or float32 where the element is
  const float* centre;            ///< [kv_head, width] c
  const float* first_offset;      ///< [kv_head, width] v_0 - c
  const float* inverse_variance;  ///< [kv_head, width] 1 / sv^2 or 0; null: not wanted

  float scale;
  float soft_cap;  ///< 0: none
  bool causal;
  int window;             ///< 0: none
  const float* key_bias;  ///< [head or 1, position]; null: none
  const float* distance_bias;
  std::int64_t key_bias_stride, distance_bias_stride;  ///< from head to head; 0: shared
  const float* sink_logit;                             ///< [head]; null: none

  float prior_strength;    ///< nu
  float prior_total;       ///< nu sigma0^2
  float prior_precision;   ///< lambda
  const float* precision;  ///< lambda as [head, position, head_dim] by the strides below; null: the one number
  std::int64_t precision_strides[3];

  FusedFields fields;
  void* output;       ///< [head, position, head_dim], element; null: not wanted
  float* first_mass;  ///< [head, position, first_masses]; null: not wanted
  int first_masses;
  float* residual_by_dimension;  ///< [head, position, head_dim]; null: not wanted
  float* precision_by_dimension;
};

/// Query rows of one thread block, 16 for each warp.
inline constexpr int fused_rows = 64;

}  // namespace gainlens::kernels
