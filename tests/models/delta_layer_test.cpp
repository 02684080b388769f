#include "models/decoder/delta_layer.h"

#include "models/random_decoder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace gainlens::models {
namespace delta_layer_test {

using gainlens::testing::RandomWeights;
using gainlens::testing::small_config;

DecoderConfig with_delta_layers() {
  DecoderConfig config = small_config();
  config.delta = {.layers = {true, true}, .key_heads = 2, .value_heads = 4, .key_dim = 6, .value_dim = 5, .kernel = 4};
  config.norm_offset = 1;
  return config;
}

/// The layer in plain libtorch, one token after the other, without blocks and without our kernels.
at::Tensor plain_layer(const DecoderConfig& config, const LayerWeights& w, const at::Tensor& input) {
  const std::int64_t batch = input.size(0), positions = input.size(1), keys = config.delta.keys();
  const at::Tensor rows =
      at::cat({at::linear(input, w.delta_query), at::linear(input, w.delta_key), at::linear(input, w.delta_value)}, -1);
  const at::Tensor mixed =
      at::silu(at::conv1d(rows.transpose(1, 2), w.delta_convolution, {}, 1, 3, 1, rows.size(2)).slice(2, 0, positions))
          .transpose(1, 2);
  const auto unit = [](const at::Tensor& x) { return x / at::sqrt(x.pow(2).sum(-1, true) + 1e-6); };
  const at::Tensor query = unit(mixed.slice(2, 0, keys).reshape({batch, positions, 2, 6})) / std::sqrt(6.0);
  const at::Tensor key = unit(mixed.slice(2, keys, 2 * keys).reshape({batch, positions, 2, 6}));
  const at::Tensor value = mixed.slice(2, 2 * keys).reshape({batch, positions, 4, 5});
  const at::Tensor beta = at::sigmoid(at::linear(input, w.delta_beta));
  const at::Tensor steps = at::log1p(at::exp(at::linear(input, w.delta_decay) + w.delta_decay_bias));
  const at::Tensor decay = at::exp(-at::exp(w.delta_log_rate) * steps);
  at::Tensor output = at::empty({batch, positions, 4, 5}, input.options());
  for (std::int64_t head = 0; head < 4; ++head) {
    at::Tensor state = at::zeros({batch, 6, 5}, input.options());
    for (std::int64_t t = 0; t < positions; ++t) {
      const at::Tensor k = key.select(1, t).select(1, head / 2), q = query.select(1, t).select(1, head / 2);
      state = state * decay.select(1, t).select(1, head).view({batch, 1, 1});
      const at::Tensor predicted = at::einsum("bkv,bk->bv", {state, k});
      const at::Tensor missing = value.select(1, t).select(1, head) - predicted;
      const at::Tensor written = beta.select(1, t).select(1, head).unsqueeze(1) * missing;
      state = state + at::einsum("bk,bv->bkv", {k, written});
      output.select(1, t).select(1, head).copy_(at::einsum("bkv,bk->bv", {state, q}));
    }
  }
  const at::Tensor size = at::sqrt(output.pow(2).mean(-1, true) + config.norm_epsilon);
  const at::Tensor gate = at::silu(at::linear(input, w.delta_gate)).view(output.sizes());
  return at::linear((output / size * w.delta_norm * gate).flatten(2), w.delta_output);
}

TEST(DeltaLayer, IsThePlainLayerAcrossBlocksOfPositions) {
  const DecoderConfig config = with_delta_layers();
  const LayerWeights weights = RandomWeights(5, at::kDouble).of(config).layers[0];
  const at::Tensor input = at::randn({2, 1100, 16}, at::kDouble);  // more than two blocks
  const at::Tensor residual = at::randn({2, 1100, 16}, at::kDouble);
  const at::Tensor expected = plain_layer(config, weights, input);
  LayerWeights rest = weights;
  const LayerProjections projections(rest, WeightUse::frozen);
  const at::Tensor found = delta_layer(config, projections, rest, input, {});
  EXPECT_LT((found - expected).abs().max().item<double>(), 1e-11);
  const at::Tensor added = delta_layer(config, projections, rest, input, residual);
  EXPECT_LT((added - expected - residual).abs().max().item<double>(), 1e-11);
}

TEST(DeltaLayer, ALongerTextChangesTheRoundingAloneBeforeItsEnd) {
  const DecoderConfig config = with_delta_layers();
  LayerWeights rest = RandomWeights(5, at::kFloat).of(config).layers[0];
  const LayerProjections projections(rest, WeightUse::frozen);
  const at::Tensor input = at::randn({1, 600, 16}, at::kFloat);
  const at::Tensor whole = delta_layer(config, projections, rest, input, {});
  for (const std::int64_t positions : {1, 2, 10, 65, 512, 513, 514}) {  // below, at and above chunks and blocks
    const at::Tensor part = delta_layer(config, projections, rest, input.slice(1, 0, positions), {});
    const at::Tensor difference = (part - whole.slice(1, 0, positions)).abs().max();
    EXPECT_LT(difference.item<double>(), 1e-6 * part.abs().max().item<double>()) << positions;
  }
}

TEST(DeltaLayer, HasNoSitesOfAttention) {
  DecoderConfig config = with_delta_layers();
  config.delta.layers = {true, false};
  config.gate = Gate::elementwise;
  Decoder model(config, RandomWeights(5, at::kFloat).of(config));
  std::vector<std::string> attention;
  for (const hooks::SiteShape& site : model.sites()) {
    if (site.site.name.find(".attn.") != std::string::npos) attention.push_back(site.site.name);
  }
  ASSERT_FALSE(attention.empty());
  for (const std::string& name : attention) EXPECT_TRUE(name.starts_with("blocks.1.")) << name;
  EXPECT_TRUE(model.layout().has_delta(0));
  EXPECT_FALSE(model.layout().has_delta(1));
  EXPECT_EQ(model.layout().kinds(), (std::vector<std::string>{"gated delta rule", "global"}));
  // A pattern that is wanted everywhere exists in the layers with attention alone.
  hooks::Hooks hooks;
  int seen = 0;
  hooks.observe(hooks::Glob("blocks.*.attn.hook_pattern"), [&](const auto&, const auto&) { ++seen; });
  model.forward({at::zeros({1, 5}, at::kLong)}, {}, hooks);
  EXPECT_EQ(seen, 1);
}

}  // namespace delta_layer_test
}  // namespace gainlens::models
