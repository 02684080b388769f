#include "models/decoder/convolution_layer.h"

#include "models/random_decoder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace gainlens::models {
namespace convolution_layer_test {

using gainlens::testing::RandomWeights;
using gainlens::testing::small_config;

DecoderConfig with_convolutions(bool bias) {
  DecoderConfig config = small_config();
  config.convolution = {.layers = {true, false}, .kernel = 4, .bias = bias};
  return config;
}

TEST(ConvolutionLayer, EqualsLibtorch) {
  for (const bool bias : {false, true}) {
    const LayerWeights weights = RandomWeights(5, at::kDouble).of(with_convolutions(bias)).layers[0];
    // more than one block of positions
    const at::Tensor input = at::randn({2, 700, 16}, at::kDouble), residual = at::randn({2, 700, 16}, at::kDouble);
    const at::Tensor gate = at::linear(input, weights.convolution_gate, weights.convolution_gate_bias);
    const at::Tensor output_gate =
        at::linear(input, weights.convolution_output_gate, weights.convolution_output_gate_bias);
    const at::Tensor rows = gate * at::linear(input, weights.convolution_input, weights.convolution_input_bias);
    const at::Tensor mixed =
        at::conv1d(rows.transpose(1, 2), weights.convolution, weights.convolution_bias, 1, 3, 1, 16).slice(2, 0, 700);
    const at::Tensor expected =
        at::linear(output_gate * mixed.transpose(1, 2), weights.convolution_output, weights.convolution_output_bias);
    LayerWeights rest = weights;
    const LayerProjections projections(rest, WeightUse::frozen);
    const at::Tensor found = convolution_layer(projections, rest, input, {});
    EXPECT_LT((found - expected).abs().max().item<double>(), 1e-12);
    const at::Tensor added = convolution_layer(projections, rest, input, residual);
    EXPECT_LT((added - expected - residual).abs().max().item<double>(), 1e-12);
    // A text that comes in pieces.
    at::Tensor past;
    std::vector<at::Tensor> pieces;
    for (const auto& [begin, end] : {std::pair{0, 1}, std::pair{1, 3}, std::pair{3, 600}, std::pair{600, 700}})
      pieces.push_back(convolution_layer(projections, rest, input.slice(1, begin, end), {}, &past));
    EXPECT_LT((at::cat(pieces, 1) - expected).abs().max().item<double>(), 1e-12);
    EXPECT_TRUE(at::allclose(past, rows.slice(1, 697), 1e-12, 1e-14));
  }
}

TEST(ConvolutionLayer, HasNoSitesOfAttention) {
  const DecoderConfig config = with_convolutions(false);
  Decoder model(config, RandomWeights(5, at::kFloat).of(config));
  for (const hooks::SiteShape& site : model.sites()) EXPECT_FALSE(site.site.name.starts_with("blocks.0.attn."));
  EXPECT_FALSE(model.layout().attends(0));
  EXPECT_TRUE(model.layout().attends(1));
  EXPECT_EQ(model.layout().kinds(), (std::vector<std::string>{"short convolution", "global"}));
  hooks::Hooks hooks;
  int seen = 0;
  hooks.observe(hooks::Glob("blocks.*.attn.hook_pattern"), [&](const auto&, const auto&) { ++seen; });
  model.forward({at::zeros({1, 5}, at::kLong)}, {}, hooks);
  EXPECT_EQ(seen, 1);
}

}  // namespace convolution_layer_test
}  // namespace gainlens::models
