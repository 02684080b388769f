#include "models/all_finite.h"

#include "kernels/elementwise/row_functions.h"

#include <ATen/ATen.h>

namespace gainlens::models {

bool all_finite(const at::Tensor& values) {
  if (values.numel() == 0) return true;
  if (values.is_cpu() && values.scalar_type() != at::kDouble) return kernels::all_finite(values.detach());
  const auto [smallest, largest] = at::aminmax(values.detach());
  return at::isfinite(smallest).logical_and(at::isfinite(largest)).item<bool>();
}

}  // namespace gainlens::models
