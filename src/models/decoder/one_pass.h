#pragma once

#include "kernels/gradient_tracking.h"

#include <ATen/core/Tensor.h>

namespace gainlens::models {

/// Whether vector code may take the tensor: on the CPU, without gradient, not in float64. libtorch computes the
/// others.
inline bool one_pass(const at::Tensor& x) {
  return x.is_cpu() && x.scalar_type() != at::kDouble && !kernels::is_tracked(x);
}

}  // namespace gainlens::models
