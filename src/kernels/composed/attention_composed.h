#pragma once

#include "kernels/attention_inputs.h"
#include "kernels/composed/queries_per_block.h"

namespace gainlens::kernels {

/// All statistics from library calls over blocks of queries: runs on any device, O(T) memory. Scores are float64 for
/// float64 inputs and float32 (never TF32) for the others. Products of weights and values are always float64
/// (value_moments.h); consumer GPUs compute these slowly. Key 0 is kept out of the sums, as in the streaming kernel.
/// The loop over blocks reads nothing back from the device.
///
/// All blocks of queries have the same shape; the last one is padded. A block reads no key after its last query. So
/// later positions do not change the bits of earlier ones, as long as the library's products depend on shapes alone.
/// @param options  without `sequences`; inputs and options have been checked (checked_shape, check_magnitudes)
QueryStatistics attention_composed(const AttentionOptions& options, const AttentionShape& shape,
                                   const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

/// Only the first queries of causal attention, at most `centre_keys`, from the keys that they see. A kernel that
/// centres values by the mean of that many values leaves these queries to this function.
/// @param value_variance  [kv_head, value_dim] float64, over all positions; used for `value_variance` and
///     `kalman_gain_scaled`
QueryStatistics attention_composed_first(const AttentionOptions& options, const AttentionShape& shape,
                                         const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                         const at::Tensor& value_variance);

}  // namespace gainlens::kernels
