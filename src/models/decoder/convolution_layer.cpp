#include "models/decoder/convolution_layer.h"

#include "kernels/delta/causal_convolution.h"
#include "models/decoder/block_positions.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace gainlens::models {

at::Tensor convolution_layer(const LayerProjections& projections, const LayerWeights& rest, const at::Tensor& input,
                             const at::Tensor& residual, at::Tensor* past) {
  at::Tensor own;
  at::Tensor& before = past != nullptr ? *past : own;
  std::vector<at::Tensor> blocks;
  for (std::int64_t begin = 0; begin < input.size(1); begin += block_positions) {
    const std::int64_t end = std::min(begin + block_positions, input.size(1));
    const auto part = [&](const at::Tensor& tensor) { return tensor.slice(1, begin, end).contiguous(); };
    const std::vector<at::Tensor> rows = projected_by(
        {&projections.convolution_gate, &projections.convolution_output_gate, &projections.convolution_input},
        part(input));
    const at::Tensor mixed =
        kernels::causal_convolution(rows[0] * rows[2], rest.convolution, rest.convolution_bias, before);
    blocks.push_back(projections.convolution_output(rows[1] * mixed, kernels::Activation::none,
                                                    residual.defined() ? part(residual) : residual));
  }
  return blocks.size() == 1 ? blocks[0] : at::cat(blocks, 1);
}

}  // namespace gainlens::models
