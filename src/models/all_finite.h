#pragma once

#include <ATen/core/Tensor.h>

namespace gainlens::models {

/// Whether no element is NaN or infinite. One pass and no temporary, unlike at::isfinite(): smallest and largest are
/// NaN if any element is, and one of them is infinite if any element is.
bool all_finite(const at::Tensor& values);

}  // namespace gainlens::models
