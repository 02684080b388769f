#include "models/rms_norm.h"

#include <ATen/ATen.h>

namespace gainlens::models {

at::Tensor rms_normalized(const at::Tensor& x, double epsilon) {
  const at::Tensor wide = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
  return (wide * at::rsqrt(wide.pow(2).mean(-1, /*keepdim=*/true) + epsilon)).to(x.scalar_type());
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return weight * rms_normalized(x, epsilon);
}

}  // namespace gainlens::models
