#pragma once

#include "kernels/gradient/pointwise_attention.h"

namespace gainlens::kernels {

/// pointwise_attention() and pointwise_attention_moments() for float32 on the CPU: one loop over sequences and heads,
/// whose bits do not depend on the number of threads. No weights are kept for the backward pass.
/// @param moments  else variance and balance stay undefined
PointwiseMoments pointwise_loops(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                 const PackedBounds& begin, const PointwiseAttentionOptions& options, bool moments);

}  // namespace gainlens::kernels
