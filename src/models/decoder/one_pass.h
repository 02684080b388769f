#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

namespace gainlens::models {

/// Whether vector code may take the tensor: it has no gradient and no float64. libtorch computes the others.
inline bool one_pass(const at::Tensor& x) {
  return x.scalar_type() != at::kDouble && !(at::GradMode::is_enabled() && x.requires_grad());
}

}  // namespace gainlens::models
