#include "models/decoder/alibi.h"

#include "core/check.h"

#include <ATen/ATen.h>

#include <bit>
#include <cmath>
#include <vector>

namespace gainlens::models {

namespace {

/// [head], float64.
at::Tensor slopes(std::int64_t heads) {
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  std::vector<double> values;
  for (std::int64_t i = 1; i <= power; ++i)
    values.push_back(std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(power)));
  for (std::int64_t i = 1; std::ssize(values) < heads; i += 2) {
    values.push_back(std::exp2(-4.0 * static_cast<double>(i) / static_cast<double>(power)));
  }
  return at::tensor(values, at::kDouble);
}

}  // namespace

at::Tensor alibi_distance_bias(const Alibi& alibi, std::int64_t heads, std::int64_t positions) {
  ASSERT(!alibi.bfloat16, "ALiBi by distance for a family that rounds by position");
  return slopes(heads).unsqueeze(1) * at::arange(positions, at::kDouble) * -alibi.factor;
}

at::Tensor alibi_key_bias(const Alibi& alibi, std::int64_t heads, std::int64_t positions) {
  ASSERT(alibi.bfloat16, "ALiBi by position for a family that does not round");
  const auto rounded = [](const at::Tensor& x) { return x.to(at::kBFloat16).to(at::kDouble); };
  return rounded(rounded(slopes(heads)).unsqueeze(1) * rounded(at::arange(positions, at::kDouble))) * alibi.factor;
}

}  // namespace gainlens::models
