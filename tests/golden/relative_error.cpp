#include "golden/relative_error.h"

#include <ATen/ATen.h>

#include <limits>

namespace gainlens::golden {

double relative_error(const at::Tensor& found, const at::Tensor& expected, double floor, Over over) {
  constexpr double never_passes = std::numeric_limits<double>::infinity();
  if (!found.defined() || found.sizes() != expected.sizes()) return never_passes;
  const at::Tensor known = expected.isnan().logical_not();
  if (!at::equal(known, found.isnan().logical_not())) return never_passes;
  const at::Tensor a = found.to(at::kDouble).masked_select(known);
  const at::Tensor b = expected.to(at::kDouble).masked_select(known);
  if (a.numel() == 0 || !at::isfinite(a).all().item<bool>() || !at::isfinite(b).all().item<bool>()) return never_passes;

  const double largest = b.abs().max().item<double>();
  if (largest == 0) return a.abs().max().item<double>() == 0 ? 0 : never_passes;
  const at::Tensor errors = (a - b).abs() / b.abs().clamp_min(floor * largest);
  return over == Over::largest ? errors.max().item<double>() : errors.pow(2).mean().sqrt().item<double>();
}

}  // namespace gainlens::golden
