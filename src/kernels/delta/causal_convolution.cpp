#include "kernels/delta/causal_convolution.h"

#include "core/check.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace gainlens::kernels {

at::Tensor causal_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& past) {
  CHECK(x.dim() == 3 && x.numel() > 0 && x.is_floating_point(),
        "causal convolution: the input must be [batch, position, channel], with at least one element");
  CHECK(weight.dim() == 3 && weight.size(0) == x.size(2) && weight.size(1) == 1 && weight.size(2) > 0 &&
            weight.scalar_type() == x.scalar_type(),
        "causal convolution: the weight does not fit {} channels in shape or type", x.size(2));
  CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == x.size(2) && bias.scalar_type() == x.scalar_type()),
        "causal convolution: the bias does not fit {} channels in shape or type", x.size(2));
  const std::int64_t positions = x.size(1), kernel = weight.size(2);
  const std::vector<std::int64_t> past_shape{x.size(0), kernel - 1, x.size(2)};
  if (!past.defined()) past = at::zeros(past_shape, x.options());
  CHECK(past.sizes() == at::IntArrayRef(past_shape) && past.scalar_type() == x.scalar_type(),
        "causal convolution: the positions before the first one do not fit in shape or type");

  const at::ScalarType wide = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor extended = at::cat({past, x}, 1);
  const at::Tensor taps = weight.squeeze(1).to(wide);  // [channel, kernel]
  at::Tensor sum = extended.slice(1, 0, positions).to(wide) * taps.select(1, 0);
  for (std::int64_t tap = 1; tap < kernel; ++tap)
    sum.addcmul_(extended.slice(1, tap, tap + positions).to(wide), taps.select(1, tap));
  if (bias.defined()) sum.add_(bias.to(wide));
  past = extended.slice(1, positions).clone();
  return sum.to(x.scalar_type());
}

at::Tensor causal_convolution_silu(const at::Tensor& x, const at::Tensor& weight, at::Tensor& past) {
  return at::silu(causal_convolution(x, weight, {}, past));
}

}  // namespace gainlens::kernels
