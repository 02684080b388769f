#pragma once

#include "kernels/attention_inputs.h"

namespace gainlens::kernels {

/// All statistics from library calls over blocks of queries: right on any device, O(T) memory. Scores are float64 for
/// float64 inputs and float32 (never TF32) for the others; products of weights and values are float64 always
/// (value_moments.h), which consumer GPUs do slowly. Key 0 stays apart from the sums, as in the streaming kernel.
/// Within the loop nothing is read back from the device.
///
/// A block of queries always has the same shape, padded where the text ends, and reads no key after its last query, so
/// that later positions leave the bits of earlier ones as they are wherever the library's products depend on shapes
/// alone.
/// @param options  without `sequences`; inputs and options have been checked (checked_shape, check_magnitudes)
QueryStatistics attention_composed(const AttentionOptions& options, const AttentionShape& shape,
                                   const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

/// The first queries of causal attention alone, at most `centre_keys`, from the keys that they see: what a kernel that
/// centres values by the mean of as many keys leaves to this one.
/// @param value_variance  [kv_head, head_dim] float64, over all positions; gives `value_variance` and
/// `kalman_gain_scaled`
QueryStatistics attention_composed_first(const AttentionOptions& options, const AttentionShape& shape,
                                         const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                         const at::Tensor& value_variance);

}  // namespace gainlens::kernels
