#pragma once

#include "kernels/attention_inputs.h"

namespace gainlens::kernels {

/// The CPU's kernel: all statistics in one pass over tiles of the scores, for one sequence.
///
/// @param query  [head, position, head_dim] on the CPU, with key and value as attention_statistics has checked them
/// @throws RunFailed  as attention_statistics
QueryStatistics attention_streaming(AttentionPlan::Workspace& workspace, const AttentionOptions& options,
                                    const AttentionShape& shape, const at::Tensor& query, const at::Tensor& key,
                                    const at::Tensor& value);

}  // namespace gainlens::kernels
