#include "models/alibi.h"

#include <ATen/ATen.h>

#include <bit>
#include <cmath>
#include <vector>

namespace gainlens::models {

at::Tensor alibi_bias(const Alibi& alibi, std::int64_t heads, std::int64_t positions) {
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  std::vector<double> slopes;
  for (std::int64_t i = 1; i <= power; ++i) slopes.push_back(std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(power)));
  for (std::int64_t i = 1; std::ssize(slopes) < heads; i += 2) {
    slopes.push_back(std::exp2(-4.0 * static_cast<double>(i) / static_cast<double>(power)));
  }
  const auto rounded = [&alibi](const at::Tensor& x) { return alibi.bfloat16 ? x.to(at::kBFloat16).to(at::kDouble) : x; };
  const at::Tensor slope = rounded(at::tensor(slopes, at::kDouble)), position = rounded(at::arange(positions, at::kDouble));
  return rounded(slope.unsqueeze(1) * position) * alibi.factor;
}

}  // namespace gainlens::models
