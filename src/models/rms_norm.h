#pragma once

#include <ATen/core/Tensor.h>

namespace gainlens::models {

/// x / sqrt(mean(x^2) + epsilon) over the last axis, without the weight.
/// Computed in float32 for float32 and narrower types and rounded back to the type of `x`; in float64 for float64.
at::Tensor rms_normalized(const at::Tensor& x, double epsilon);

/// The same times `weight` [last axis], the product in the type of `x`.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon);

}  // namespace gainlens::models
