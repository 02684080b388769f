#include "models/all_finite.h"

#include <ATen/ATen.h>

namespace gainlens::models {

bool all_finite(const at::Tensor& values) {
  if (values.numel() == 0) return true;
  const auto [smallest, largest] = at::aminmax(values.detach());
  return at::isfinite(smallest).logical_and(at::isfinite(largest)).item<bool>();
}

}  // namespace gainlens::models
