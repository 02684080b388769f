#include "models/decoder/rope.h"

#include "kernels/elementwise/row_functions.h"
#include "kernels/gradient/layer_gradients.h"

#include <ATen/ATen.h>

#include <vector>

namespace gainlens::models {

RopeTables rope_tables(const RopeFrequencies& frequencies, std::int64_t positions, const at::TensorOptions& like,
                       std::int64_t first) {
  const at::Tensor inverse = at::tensor(frequencies.inverse, at::kDouble);
  const at::Tensor angles =
      at::arange(first, first + positions, at::kDouble).unsqueeze(1) * inverse;  // [position, head_dim / 2]
  return {(angles.cos() * frequencies.attention_factor).to(like),
          (angles.sin() * frequencies.attention_factor).to(like)};
}

at::Tensor rotate(const at::Tensor& heads, const RopeTables& tables) {
  if (kernels::one_pass(heads)) return kernels::rotated(heads, tables.cosine, tables.sine);
  if (heads.is_cpu() && heads.scalar_type() == at::kFloat)
    return kernels::trained_rotation(heads, tables.cosine, tables.sine);
  const std::int64_t half = tables.cosine.size(-1), rest = heads.size(-1) - 2 * half;
  const at::Tensor cosine = tables.cosine.unsqueeze(1);  // [position, 1, head_dim / 2]: the same for every head
  const at::Tensor sine = tables.sine.unsqueeze(1);
  const at::Tensor first = heads.narrow(-1, 0, half);
  const at::Tensor second = heads.narrow(-1, half, half);
  std::vector<at::Tensor> parts{first * cosine - second * sine, second * cosine + first * sine};
  if (rest > 0) parts.push_back(heads.narrow(-1, 2 * half, rest));
  return at::cat(parts, -1);
}

}  // namespace gainlens::models
