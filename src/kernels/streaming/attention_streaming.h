#pragma once

#include "kernels/attention_inputs.h"

namespace gainlens::kernels {

/// The CPU kernel: all statistics of one sequence in one pass over tiles of the scores.
///
/// @param query  [head, position, key_dim] on the CPU. attention_statistics has checked query, key and value.
/// @throws RunFailed  as attention_statistics
QueryStatistics attention_streaming(AttentionPlan::Workspace& workspace, const AttentionOptions& options,
                                    const AttentionShape& shape, const at::Tensor& query, const at::Tensor& key,
                                    const at::Tensor& value);

}  // namespace gainlens::kernels
