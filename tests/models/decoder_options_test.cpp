// Options of the decoder that a few families have, each against what it means. decoder_test.cpp runs every option
// through gradients, batches and the attention operations.
#include "core/error.h"
#include "models/decoder/attention_ops.h"
#include "models/decoder/decoder.h"
#include "models/decoder/filter_config.h"
#include "models/decoder/rope.h"
#include "models/random_decoder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::models {
namespace decoder_options_test {

using gainlens::testing::logits;
using gainlens::testing::RandomWeights;
using gainlens::testing::small_config;
using gainlens::testing::some_tokens;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// One layer, so that earlier tokens reach the last one through keys and values alone.
DecoderConfig one_layer() {
  DecoderConfig config = small_config();
  config.layers = 1;
  config.window = {0};
  return config;
}

at::Tensor logits_of(const DecoderConfig& config, const DecoderWeights& weights, const hooks::Tokens& tokens) {
  Decoder model(config, weights);
  return logits(model, tokens);
}

bool near(const at::Tensor& a, const at::Tensor& b) {
  return at::allclose(a, b, 1e-10, 1e-10);
}

TEST(DecoderOptions, PositionOffsetSkipsRowsOfTheTable) {
  DecoderConfig config = small_config();
  config.positions = Positions::learned;
  config.position_offset = 2;
  DecoderWeights weights = RandomWeights(1, at::kDouble).of(config);
  const hooks::Tokens tokens = some_tokens(config, 1, 7);
  const at::Tensor found = logits_of(config, weights, tokens);
  config.position_offset = 0;
  weights.position_embedding = weights.position_embedding.slice(0, 2).contiguous();
  EXPECT_TRUE(at::equal(found, logits_of(config, weights, tokens)));
  weights.position_embedding = weights.position_embedding.roll(1, 0);
  EXPECT_FALSE(near(found, logits_of(config, weights, tokens)));
}

TEST(DecoderOptions, TheLastPositionHasTheLastRowOfTheTable) {
  DecoderConfig config = one_layer();
  config.positions = Positions::learned;
  config.position_offset = 2;
  config.max_positions = 9;
  Decoder model(config, RandomWeights(1, at::kDouble).of(config));
  EXPECT_NO_THROW(logits(model, some_tokens(config, 1, 9)));
  EXPECT_THAT([&] { logits(model, some_tokens(config, 1, 10)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("10 positions; the model was made for 9")));
}

TEST(DecoderOptions, AnUnrotatedLayerDoesNotSeeTheOrderOfEarlierTokens) {
  DecoderConfig config = one_layer();
  const DecoderWeights weights = RandomWeights(1, at::kDouble).of(config);
  const hooks::Tokens tokens = some_tokens(config, 1, 9);
  const hooks::Tokens permuted{at::cat({tokens.ids.slice(1, 0, 8).flip(1), tokens.ids.slice(1, 8)}, 1)};
  const auto last = [&](const hooks::Tokens& of) { return logits_of(config, weights, of)[0][8]; };
  EXPECT_FALSE(near(last(tokens), last(permuted)));
  config.unrotated = {true};
  EXPECT_TRUE(near(last(tokens), last(permuted)));
}

TEST(DecoderOptions, NormsWithEqualWeightsCommuteWithTheRotation) {
  DecoderConfig config = small_config();
  config.qk_norm = QkNorm::head;
  DecoderWeights weights = RandomWeights(1, at::kDouble).of(config);
  const hooks::Tokens tokens = some_tokens(config, 1, 9);
  const auto both = [&] {
    DecoderConfig after = config;
    after.rotated_before_norm = true;
    return near(logits_of(config, weights, tokens), logits_of(after, weights, tokens));
  };
  EXPECT_FALSE(both());
  for (LayerWeights& layer : weights.layers) {
    layer.query_norm = at::full_like(layer.query_norm, 1.5);
    layer.key_norm = at::full_like(layer.key_norm, 0.7);
  }
  EXPECT_TRUE(both()) << "a rotation does not change the length of a head";
}

TEST(DecoderOptions, ResidualScaleIsAFactorOnBothResults) {
  DecoderConfig config = small_config();
  config.output_bias = config.mlp_bias = true;
  DecoderWeights weights = RandomWeights(1, at::kDouble).of(config);
  const hooks::Tokens tokens = some_tokens(config, 1, 9);
  config.residual_scale = 0.22;
  const at::Tensor found = logits_of(config, weights, tokens);
  config.residual_scale = 1;
  for (LayerWeights& layer : weights.layers) {
    for (at::Tensor* last : {&layer.output, &layer.output_bias, &layer.mlp_down, &layer.mlp_down_bias})
      *last = *last * 0.22;
  }
  EXPECT_TRUE(near(found, logits_of(config, weights, tokens)));
}

TEST(DecoderOptions, LogitScaleAndHeadBiasInEveryForm) {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    const double tolerance = dtype == at::kDouble ? 1e-12 : 1e-5;
    DecoderConfig config = small_config();
    config.head_bias = true;
    config.logit_scale = 0.125;
    const DecoderWeights weights = RandomWeights(1, dtype).of(config);
    Decoder model(config, weights);
    const at::Tensor rows = model.forward(some_tokens(config, 1, 6), {}, {}).hidden.flatten(0, 1);
    const at::Tensor expected = (at::matmul(rows, weights.head.t()) + weights.head_bias) * 0.125;
    EXPECT_TRUE(at::allclose(model.unembed(rows), expected, tolerance, tolerance));
    const at::Tensor targets = at::arange(6, at::kLong) * 7;
    const at::Tensor losses = -expected.log_softmax(1).gather(1, targets.unsqueeze(1)).squeeze(1);
    EXPECT_TRUE(
        at::allclose(model.target_losses(rows, targets).to(at::kDouble), losses.to(at::kDouble), tolerance, tolerance));
  }
}

TEST(DecoderOptions, TheLossOfTrainingHasTheScaleAndRefusesABias) {
  DecoderConfig config = small_config();
  config.logit_scale = 0.125;
  DecoderWeights weights = RandomWeights(1, at::kDouble).of(config);
  const at::Tensor targets = at::arange(6, at::kLong) * 7;
  Decoder scaled(config, weights, WeightUse::trained);
  const at::Tensor rows = scaled.forward(some_tokens(config, 1, 6), {}, {}).hidden.flatten(0, 1);
  const at::Tensor expected =
      -(at::matmul(rows, weights.head.t()) * 0.125).log_softmax(1).gather(1, targets.unsqueeze(1)).mean();
  EXPECT_NEAR(scaled.mean_loss(rows, targets).item<double>(), expected.item<double>(), 1e-10);

  config.head_bias = true;
  Decoder biased(config, RandomWeights(1, at::kDouble).of(config), WeightUse::trained);
  EXPECT_THAT([&] { biased.mean_loss(rows, targets); },
              ThrowsMessage<InvalidArgument>(HasSubstr("the output head has a bias")));
}

TEST(DecoderOptions, AStretchedBaseByHand) {
  // The base becomes 100 50^(8/6); pair i turns by base^(-2i/8) at each position.
  const RopeConfig rope{.base = 100, .scaling = RopeScaling::stretched_base, .factor = 50};
  const double base = 100 * std::pow(50.0, 8.0 / 6);
  const auto found = rope_frequencies(rope, 8, 1000).inverse;
  ASSERT_EQ(found.size(), 4U);
  for (int pair = 0; pair < 4; ++pair)
    EXPECT_NEAR(found[static_cast<std::size_t>(pair)], std::pow(base, -pair / 4.0), 1e-15);
  EXPECT_THAT([&] { rope_frequencies(rope, 2, 1); }, ThrowsMessage<InvalidArgument>(HasSubstr("needs more than 2")));
}

TEST(DecoderOptions, TheFilterRefusesParallelParts) {
  DecoderConfig config = small_config();
  config.filter = gainlens::testing::filter_for_tests();
  EXPECT_NO_THROW(check_filter(config, "here"));
  config.parallel_residual = true;
  EXPECT_THAT([&] { check_filter(config, "here"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("here: attention and MLP read the same stream")));
}

TEST(DecoderOptions, ASharedExpertIsAddedToTheChosenOnes) {
  DecoderConfig config = one_layer();
  config.experts = {.count = 3, .per_token = 2, .width = 12, .shared_width = 8, .shared_score = true};
  DecoderWeights weights = RandomWeights(1, at::kDouble).of(config);
  const hooks::Tokens tokens = some_tokens(config, 1, 9);
  const auto stream = [&](const DecoderConfig& of) {
    return Decoder(of, weights).forward(tokens, {.stop_at_layer = 1}, {}).hidden;
  };
  LayerWeights& layer = weights.layers[0];
  const at::Tensor scored = stream(config);
  // A score of 0 halves the shared expert; without a score it counts whole.
  layer.shared_score = at::zeros_like(layer.shared_score);
  const at::Tensor half = stream(config);
  DecoderConfig plain = config;
  plain.experts.shared_score = false;
  layer.shared_score = at::Tensor();
  const at::Tensor whole = stream(plain);
  plain.experts.shared_width = 0;
  layer.shared_gate = layer.shared_up = layer.shared_down = at::Tensor();
  const at::Tensor without = stream(plain);
  EXPECT_TRUE(near(half - without, (whole - without) / 2));
  EXPECT_FALSE(near(scored, half));
  EXPECT_GT((whole - without).abs().max().item<double>(), 1e-3);
}

}  // namespace decoder_options_test
}  // namespace gainlens::models
