#include "kernels/composed/value_moments.h"

#include <ATen/ATen.h>

#include <utility>

namespace gainlens::kernels {

CentredValues::CentredValues(const at::Tensor& value, at::Tensor centre_of_values)
    : centre(std::move(centre_of_values)) {
  const at::Tensor centred = value.to(at::kDouble) - centre;
  packed = at::cat({centred, centred.square()}, 2);
}

OtherKeys moments_of_others(const ScoreBlock& block, const at::Tensor& weights, const CentredValues& values) {
  const std::int64_t first = block.keys.begin == 0 ? 1 : 0, dims = values.packed.size(2) / 2;
  const at::Tensor others = group_rows(block, weights).slice(2, first).to(at::kDouble);
  const at::Tensor weight = others.sum(-1, /*keepdim=*/true);
  const at::Tensor sums =
      at::bmm(others, keys_of(block, values.packed).slice(1, first)).div_(weight.masked_fill(weight.eq(0), 1));
  const at::Tensor offset = sums.slice(2, 0, dims);
  const at::Tensor residual = (sums.slice(2, dims) - offset.square()).clamp_min_(0);
  return {by_head(block, weight), by_head(block, offset), by_head(block, residual)};
}

}  // namespace gainlens::kernels
