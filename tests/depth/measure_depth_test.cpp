#include "depth/measure_depth.h"

#include "depth/feedforward_branch.h"
#include "depth/perturbed_stream.h"
#include "models/decoder/attention_ops.h"
#include "models/random_decoder.h"
#include "sweep/one_sequence.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

namespace gainlens::depth {
namespace measure_depth_test {

using models::DecoderConfig;
using runfile::DepthReading;
using testing::random_decoder;
using testing::RandomWeights;
using testing::small_config;

DecoderConfig some_config() {
  DecoderConfig config = small_config();
  config.gate = models::Gate::headwise;
  config.post_norm = true;
  return config;
}

data::Chunk some_chunk(std::int64_t length) {
  data::Chunk chunk{.length = length, .sample = 0, .tokens = {}};
  for (std::int64_t i = 0; i < length; ++i)
    chunk.tokens.push_back(static_cast<tokenizers::TokenId>((i * 17 + i * i) % 50));
  return chunk;
}

LayerLoader weights_of(const DecoderConfig& config) {
  return [&config](std::int64_t layer) {
    return RandomWeights(1, at::kDouble).of(config).layers[static_cast<std::size_t>(layer)];
  };
}

TEST(MeasuredQueries, LieInTheLastQuarter) {
  EXPECT_TRUE(measured_queries(40, 256).equal(at::arange(30, 40)));
  EXPECT_TRUE(measured_queries(40, 5).equal(at::arange(30, 40, 2)));
  EXPECT_TRUE(measured_queries(40, 4).equal(at::tensor({30, 33, 36, 39}, at::kLong)));
}

TEST(ReadLayers, ShowsMomentsOfTheWeights) {
  const c10::InferenceMode inference;
  const DecoderConfig config = some_config();
  models::Decoder model = random_decoder(config);
  const data::Chunk chunk = some_chunk(40);
  const hooks::Tokens tokens = sweep::one_sequence(chunk.tokens);
  at::Tensor pattern, value, embedded;
  hooks::Hooks hooks;
  hooks.observe(hooks::Site{"blocks.1.attn.hook_pattern"}, [&](auto&, const at::Tensor& seen) { pattern = seen; });
  hooks.observe(hooks::Site{"blocks.1.attn.hook_v"}, [&](auto&, const at::Tensor& seen) { value = seen; });
  hooks.observe(hooks::Site{"blocks.0.hook_resid_pre"}, [&](auto&, const at::Tensor& seen) { embedded = seen; });
  model.forward(tokens, {}, hooks);
  const hooks::ObservedAttention expected = models::observed_by_pattern(pattern, value.transpose(1, 2));
  const DepthReadings found = read_layers(model, tokens, at::tensor({31, 38}, at::kLong), {.layers = 2});
  const LayerReading& reading = found.layers[1];
  const auto near = [](const at::Tensor& a, const at::Tensor& b) { return at::allclose(a, b, 1e-9, 1e-12); };
  EXPECT_TRUE(near(reading.n_eff[1], expected.n_eff[0].select(1, 38)));
  EXPECT_TRUE(near(reading.residual[0], expected.residual[0].select(1, 31)));
  EXPECT_TRUE(near(reading.value_variance, value[0].var(/*dim=*/0, /*unbiased=*/false)));
  EXPECT_TRUE(near(found.start, embedded[0].var(/*dim=*/0, /*unbiased=*/false)));
  EXPECT_EQ(reading.gate.sizes(), (std::vector<std::int64_t>{2, 4}));
}

TEST(MeasureDepth, CarriesEachReadingFromLayerToLayer) {
  const c10::InferenceMode inference;
  const DecoderConfig config = some_config();
  models::Decoder model = random_decoder(config);
  const data::Chunk chunk = some_chunk(64);
  const DepthOptions options{.layers = 2};
  const runfile::DepthChunk found = measure_depth(model, config, weights_of(config), chunk, options);
  ASSERT_EQ(found.layers.size(), 2u);
  EXPECT_EQ(found.queries, 16);
  const DepthReadings readings =
      read_layers(model, sweep::one_sequence(chunk.tokens), measured_queries(64, 256), options);
  const auto near = [](const runfile::DepthQuantiles& a, const at::Tensor& values) {
    const runfile::DepthQuantiles b = quantiles_of(values);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-9 * (1 + std::abs(b[i])));
  };
  for (const DepthReading rule : {DepthReading::filter, DepthReading::gain_one}) {
    const auto r = static_cast<std::size_t>(rule);
    for (std::size_t start = 0; start < runfile::depth_starts.size(); ++start) {
      at::Tensor variance = (runfile::depth_starts[start] * readings.start).expand({16, 16});
      for (std::int64_t layer = 0; layer < 2; ++layer) {
        const runfile::DepthLayer& shown = found.layers[static_cast<std::size_t>(layer)];
        const LayerReading& reading = readings.layers[static_cast<std::size_t>(layer)];
        const models::LayerWeights weights = weights_of(config)(layer);
        const at::Tensor observed = observed_variance(config, weights, reading).independent;
        const at::Tensor jacobian = FeedForwardBranch(config, layer, weights).jacobian_diagonal(reading.middle);
        near(shown.variance[r][start], variance);
        near(shown.gain[r][start], variance / (variance + observed));
        near(shown.jacobian, jacobian);
        const at::Tensor after = rule == DepthReading::filter ? 1 / (1 / variance + 1 / observed) : variance + observed;
        variance = (1 + jacobian).square().clamp_min(0.01) * after;
      }
      near(found.last[r][start], variance);
    }
  }
  EXPECT_EQ(measure_depth(model, config, weights_of(config), chunk, options), found);
}

/// The rule beside the Jacobian of the decoder itself, by central differences of whole passes from its middle stream
/// on.
TEST(MeasureDepth, SetsTheRuleBesideTheWholeJacobian) {
  const c10::InferenceMode inference;
  const DecoderConfig config = some_config();
  models::Decoder model = random_decoder(config);
  const data::Chunk chunk = some_chunk(64);
  const hooks::Tokens tokens = sweep::one_sequence(chunk.tokens);
  const DepthOptions options{.layers = 1, .truth_queries = 4};
  const runfile::DepthChunk found = measure_depth(model, config, weights_of(config), chunk, options);
  const at::Tensor queries = measured_queries(64, 256).slice(0, 0, {}, 4);
  const auto after = [&](std::int64_t coordinate, double step) {
    at::Tensor seen;
    hooks::Hooks hooks;
    hooks.replace(hooks::Glob("blocks.0.hook_resid_mid"), [&](const hooks::Site&, const at::Tensor& middle) {
      at::Tensor moved = middle.clone();
      moved.select(2, coordinate).add_(step);
      return moved;
    });
    hooks.observe(hooks::block_site(0, "hook_resid_post"), [&](auto&, const at::Tensor& post) { seen = post[0]; });
    hooks::ForwardOptions forward;
    forward.stop_at_layer = 1;
    model.forward(tokens, forward, hooks);
    return seen.index_select(0, queries);
  };
  std::vector<at::Tensor> columns;
  for (std::int64_t i = 0; i < 16; ++i) columns.push_back((after(i, 1e-5) - after(i, -1e-5)) / 2e-5);
  const at::Tensor whole = at::stack(columns, 2);  // [query, out, in] of I + J
  const DepthReadings readings = read_layers(model, tokens, queries, options);
  const at::Tensor variance =
      readings.start + observed_variance(config, weights_of(config)(0), readings.layers[0]).independent;
  const at::Tensor truth = at::matmul(whole.square(), variance.unsqueeze(2)).squeeze(2).mean(0);
  const at::Tensor rule = (whole.diagonal(0, 1, 2).square().clamp_min(0.01) * variance).mean(0);
  const runfile::DepthQuantiles expected = quantiles_of(rule / truth - 1), error = found.layers[0].truth->rule_error;
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(error[i], expected[i], 1e-6);
  EXPECT_LT(error.back(), 0);  // what the rule leaves out is never below 0
  // A layer with many products is measured at one query at least.
  DepthOptions few = options;
  few.truth_products = 1;
  EXPECT_NE(measure_depth(model, config, weights_of(config), chunk, few).layers[0].truth->rule_error, error);
}

TEST(CarriedByModel, IsTheDrawnVarianceWhereLayersAddNothing) {
  const c10::InferenceMode inference;
  const DecoderConfig config = small_config();
  models::DecoderWeights weights = RandomWeights(1, at::kDouble).of(config);
  for (models::LayerWeights& layer : weights.layers) {
    layer.output.zero_();
    layer.mlp_down.zero_();
  }
  models::Decoder model(config, std::move(weights));
  const data::Chunk chunk = some_chunk(200);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{1});
  const at::Tensor variance = at::linspace(0.5, 4, 16, at::kDouble);
  const std::vector<at::Tensor> found =
      carried_by_model(model, sweep::one_sequence(chunk.tokens), at::arange(0, 200, at::kLong),
                       {.variance = variance, .draws = 10, .layers = 2}, generator);
  ASSERT_EQ(found.size(), 2u);
  // 2000 draws: a deviation of 3.2%.
  EXPECT_LT((found[1] / variance - 1).abs().max().item<double>(), 0.16);
  EXPECT_TRUE(at::allclose(found[0], found[1], 1e-9));
}

}  // namespace measure_depth_test
}  // namespace gainlens::depth
