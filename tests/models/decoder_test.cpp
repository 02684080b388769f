// The numbers that a decoder computes, and the inputs that it refuses. decoder_sites_test.cpp tests its sites.
#include "models/decoder/decoder.h"

#include "core/error.h"
#include "models/decoder/attention_ops.h"
#include "models/materialised_attention.h"
#include "models/random_decoder.h"

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace gainlens::models {
namespace decoder_test {

using gainlens::testing::logits;
using gainlens::testing::NamedConfig;
using gainlens::testing::random_decoder;
using gainlens::testing::RandomWeights;
using gainlens::testing::small_config;
using gainlens::testing::some_tokens;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

at::Tensor doubles(std::vector<double> values, std::vector<std::int64_t> shape) {
  return at::tensor(values, at::kDouble).view(shape);
}

/// One layer of width 2 with one head. Queries are 0, so that attention is the mean over the visible values. Keys,
/// values and output are the identity. The MLP adds silu(bias of its gate) times its input.
Decoder hand_model() {
  DecoderConfig config;
  config.layers = config.heads = config.kv_heads = 1;
  config.width = config.head_dim = config.mlp_width = config.vocabulary = 2;
  config.max_positions = 8;
  config.norm_epsilon = 0;
  config.mlp_bias = true;
  config.window = {0};
  const at::Tensor identity = at::eye(2, at::kDouble), ones = at::ones({2}, at::kDouble),
                   zeros = at::zeros({2}, at::kDouble);
  DecoderWeights weights;
  weights.embedding = doubles({1, 1, 1, -1}, {2, 2});
  weights.final_norm = doubles({1, 10}, {2});
  weights.head = identity;
  LayerWeights layer;
  layer.attention_norm = layer.mlp_norm = ones;
  layer.query = at::zeros({2, 2}, at::kDouble);
  layer.key = layer.value = layer.output = identity;
  layer.mlp_gate = at::zeros({2, 2}, at::kDouble);
  layer.mlp_gate_bias = doubles({0, 1}, {2});
  layer.mlp_up = layer.mlp_down = identity;
  layer.mlp_up_bias = layer.mlp_down_bias = zeros;
  weights.layers = {layer};
  return Decoder(config, weights);
}

TEST(Decoder, ByHand) {
  Decoder model = hand_model();
  const hooks::Tokens tokens{at::tensor({0, 1}, at::kLong).view({1, 2})};
  // Position 1: the embedding (1, -1) has mean square 1. Attention adds the mean of (1, 1) and (1, -1), so the stream
  // is (2, -1). The MLP adds (silu(0), silu(1)) times the normalised (2, -1)/sqrt(2.5).
  const double silu_1 = 1 / (1 + std::exp(-1.0));
  const double second = -1 - silu_1 / std::sqrt(2.5);
  const at::Tensor stream = model.forward(tokens, {.stop_at_layer = 1}, {}).hidden;
  EXPECT_NEAR(stream[0][1][0].item<double>(), 2, 1e-15);
  EXPECT_NEAR(stream[0][1][1].item<double>(), second, 1e-15);
  const double root = std::sqrt((4 + second * second) / 2);
  const at::Tensor found = logits(model, tokens);
  EXPECT_NEAR(found[0][1][0].item<double>(), 2 / root, 1e-15);
  EXPECT_NEAR(found[0][1][1].item<double>(), 10 * second / root, 1e-14);
  EXPECT_TRUE(at::equal(found[0][0], logits(model, {tokens.ids.slice(1, 0, 1)})[0][0]));  // only position 0
}

class EveryOption : public ::testing::TestWithParam<NamedConfig> {};

TEST_P(EveryOption, AttentionOperationsAgree) {
  Decoder model = random_decoder(GetParam().config);
  const hooks::Tokens tokens = some_tokens(GetParam().config, 2, 70);
  MaterialisedAttention materialised;
  StatisticsAttention statistics([](auto, auto&&) {});
  const at::Tensor expected = logits(model, tokens, {.attention = &materialised});
  EXPECT_TRUE(at::allclose(logits(model, tokens), expected, 1e-9, 1e-9));
  EXPECT_TRUE(at::allclose(logits(model, tokens, {.attention = &statistics}), expected, 1e-9, 1e-9));
}

TEST_P(EveryOption, LaterTokensLeaveEarlierBitsAlone) {
  Decoder model = random_decoder(GetParam().config, at::kFloat);
  const hooks::Tokens tokens = some_tokens(GetParam().config, 1, 80);
  hooks::Tokens changed{tokens.ids.clone()};
  changed.ids[0][50] = (changed.ids[0][50] + 1) % GetParam().config.vocabulary;
  UsualAttention fused;
  StatisticsAttention statistics([](auto, auto&&) {});
  MaterialisedAttention materialised;
  for (hooks::AttentionOp* attention : std::initializer_list<hooks::AttentionOp*>{&fused, &statistics, &materialised}) {
    const at::Tensor before = logits(model, tokens, {.attention = attention});
    const at::Tensor after = logits(model, changed, {.attention = attention});
    EXPECT_TRUE(at::equal(before.slice(1, 0, 50), after.slice(1, 0, 50)));
    EXPECT_FALSE(at::equal(before.slice(1, 50, 51), after.slice(1, 50, 51)));
  }
}

TEST_P(EveryOption, SequencesOfABatchAreIndependent) {
  Decoder model = random_decoder(GetParam().config);
  const hooks::Tokens tokens = some_tokens(GetParam().config, 2, 20);
  const at::Tensor alone = logits(model, {tokens.ids.slice(0, 1, 2)});
  EXPECT_TRUE(at::allclose(logits(model, tokens)[1], alone[0], 1e-10, 1e-10));
}

TEST_P(EveryOption, NarrowTypesStayNearFloat64) {
  const hooks::Tokens tokens = some_tokens(GetParam().config, 1, 40);
  Decoder exact = random_decoder(GetParam().config);
  const at::Tensor expected = logits(exact, tokens);
  const double scale = expected.abs().max().item<double>();
  for (const auto& [dtype, tolerance] :
       {std::pair{at::kFloat, 1e-5}, std::pair{at::kBFloat16, 0.1}, std::pair{at::kHalf, 0.02}}) {
    Decoder model = random_decoder(GetParam().config, dtype);
    const at::Tensor found = logits(model, tokens);
    EXPECT_EQ(found.scalar_type(), dtype);
    EXPECT_LT((found.to(at::kDouble) - expected).abs().max().item<double>() / scale, tolerance) << c10::toString(dtype);
  }
}

/// Every weight of the first layer, and every weight outside the layers, that is learned.
std::vector<at::Tensor> parameters(const DecoderConfig& config, DecoderWeights weights) {
  std::vector<at::Tensor> all;
  const auto add = [&all](const std::vector<WeightField>& fields, const TensorsByField& tensors) {
    for (const WeightField& field : fields) {
      const bool learned = field.kind != WeightField::Kind::constant && field.kind != WeightField::Kind::correction;
      if (field.wanted && learned) all.push_back(*tensors.at(field.name));
    }
  };
  add(outer_fields(config), tensors_by_field(weights));
  add(layer_fields(config, 0), tensors_by_field(weights.layers[0]));
  return all;
}

TEST_P(EveryOption, GradientsMatchCentralDifferences) {
  const DecoderWeights weights = RandomWeights(1, at::kDouble).of(GetParam().config);
  std::vector<at::Tensor> leaves = parameters(GetParam().config, weights);
  for (at::Tensor& leaf : leaves) leaf.requires_grad_(true);
  Decoder model(GetParam().config, weights);
  const hooks::Tokens tokens = some_tokens(GetParam().config, 1, 12);
  const auto loss = [&] { return at::log_softmax(logits(model, tokens), -1).select(-1, 7).sum(); };
  loss().backward();
  at::NoGradGuard no_gradient;
  for (at::Tensor& leaf : leaves) {
    const at::Tensor direction = at::randn_like(leaf);
    const double step = 1e-5, expected = (leaf.grad() * direction).sum().item<double>();
    leaf.add_(direction, step);
    const double above = loss().item<double>();
    leaf.add_(direction, -2 * step);
    const double below = loss().item<double>();
    leaf.add_(direction, step);
    EXPECT_NEAR((above - below) / (2 * step), expected, 1e-5 * (1 + std::abs(expected))) << leaf.sizes();
  }
}

INSTANTIATE_TEST_SUITE_P(Decoder, EveryOption, ::testing::ValuesIn(gainlens::testing::every_option()),
                         [](const auto& param) { return param.param.name; });

TEST(Decoder, AWindowHidesOlderTokens) {
  DecoderConfig config = small_config();
  config.layers = 1;
  config.window = {5};
  Decoder model = random_decoder(config);
  const hooks::Tokens tokens = some_tokens(config, 1, 12);
  hooks::Tokens changed{tokens.ids.clone()};
  changed.ids[0][2] = 49;
  const at::Tensor difference = (logits(model, tokens) - logits(model, changed)).abs().amax(-1)[0];  // [position]
  for (std::int64_t t = 0; t < 12; ++t) {
    EXPECT_EQ(difference[t].item<double>() > 0, t >= 2 && t < 7) << t;  // |t - 2| < 5
  }
}

TEST(Decoder, QueryNormRemovesTheScaleOfQueries) {
  DecoderConfig config = small_config();
  config.qk_norm = QkNorm::head;
  config.norm_epsilon = 1e-30;
  const hooks::Tokens tokens = some_tokens(config, 1, 12);
  DecoderWeights weights = RandomWeights(1, at::kDouble).of(config);
  Decoder plain(config, weights);
  weights.layers[0].query = weights.layers[0].query * 3;
  Decoder scaled(config, weights);
  EXPECT_TRUE(at::allclose(logits(plain, tokens), logits(scaled, tokens), 1e-10, 1e-10));
}

TEST(Decoder, RopeScalingChangesTheLogits) {
  DecoderConfig config = small_config();
  const hooks::Tokens tokens = some_tokens(config, 1, 12);
  Decoder plain = random_decoder(config);
  const at::Tensor expected = logits(plain, tokens);
  for (const NamedConfig& option : gainlens::testing::every_option()) {
    if (option.config.rope.scaling == RopeScaling::none) continue;
    Decoder model = random_decoder(option.config);
    EXPECT_FALSE(at::allclose(logits(model, tokens), expected, 1e-3, 1e-3)) << option.name;
  }
}

TEST(Decoder, StopAtLayerReturnsTheStreamBeforeIt) {
  const DecoderConfig config = small_config();
  Decoder model = random_decoder(config);
  const hooks::Tokens tokens = some_tokens(config, 1, 6);
  const at::Tensor embedded = model.forward(tokens, {.stop_at_layer = 0}, {}).hidden;
  hooks::Hooks hooks;
  at::Tensor pre, post;
  hooks.observe(hooks::Glob("blocks.0.hook_resid_pre"), [&](const auto&, const at::Tensor& seen) { pre = seen; });
  hooks.observe(hooks::Glob("blocks.1.hook_resid_post"), [&](const auto&, const at::Tensor& seen) { post = seen; });
  model.forward(tokens, {}, hooks);
  EXPECT_TRUE(at::equal(embedded, pre));
  EXPECT_TRUE(at::equal(model.forward(tokens, {.stop_at_layer = 2}, {}).hidden, post));
}

TEST(Decoder, LayoutSaysWhatStatisticsNeed) {
  DecoderConfig config = small_config();
  config.window = {5, 0};
  config.gate = Gate::headwise;
  const hooks::AttentionLayout layout = random_decoder(config).layout();
  EXPECT_EQ(layout.heads, 4);
  EXPECT_EQ(layout.kv_heads, 2);
  EXPECT_EQ(layout.head_dim, 4);
  EXPECT_EQ(layout.kind(0), "window:5");
  EXPECT_TRUE(layout.gated);
  EXPECT_FALSE(layout.sink_logits);
}

TEST(Decoder, ARequestItCannotServeIsNamed) {
  const DecoderConfig config = small_config();
  Decoder model = random_decoder(config);
  const auto run = [&](const at::Tensor& ids, hooks::ForwardOptions options = {}) {
    model.forward({ids}, options, {});
  };
  EXPECT_THAT(
      [&] {
        run(at::tensor({0, 1, 50}, at::kLong).view({1, 3}));
      },
      ThrowsMessage<InvalidArgument>(
          HasSubstr("id 50 at position 2 of sequence 0; the vocabulary has 50 ids, 0 to 49")));
  EXPECT_THAT(
      [&] {
        run(at::tensor({0, 1, -1, 3}, at::kLong).view({2, 2}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("id -1 at position 0 of sequence 1")));
  EXPECT_THAT(
      [&] {
        run(at::zeros({1, 513}, at::kLong));
      },
      ThrowsMessage<InvalidArgument>(
          AllOf(HasSubstr("513 positions"), HasSubstr("512 at most"), HasSubstr("--allow-extrapolation"))));
  EXPECT_NO_THROW(run(at::zeros({1, 513}, at::kLong), {.allow_extrapolation = true}));
  EXPECT_NO_THROW(run(at::zeros({1, 512}, at::kLong)));
  EXPECT_THAT(
      [&] {
        run(at::zeros({1, 0}, at::kLong));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("the batch has no ids")));
  EXPECT_THAT([&] { run(at::zeros({4}, at::kLong)); }, ThrowsMessage<InvalidArgument>(HasSubstr("[batch, position]")));
  EXPECT_THAT(
      [&] {
        run(at::zeros({1, 4}, at::kLong), {.stop_at_layer = 3});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("stop_at_layer: 3")));
}

TEST(Decoder, TheFirstLayerThatOverflowsIsNamed) {
  const DecoderConfig config = small_config();
  const hooks::Tokens tokens = some_tokens(config, 1, 6);
  DecoderWeights weights = RandomWeights(1, at::kDouble).of(config);
  weights.layers[1].mlp_down = at::full_like(weights.layers[1].mlp_down, std::numeric_limits<double>::infinity());
  Decoder model(config, weights);
  EXPECT_THAT([&] { logits(model, tokens); }, ThrowsMessage<RunFailed>(HasSubstr("first after layer 1 at position 0")));
  EXPECT_NO_THROW(model.forward(tokens, {.stop_at_layer = 1}, {}));
  weights.embedding = at::full_like(weights.embedding, std::numeric_limits<double>::quiet_NaN());
  Decoder broken(config, weights);
  EXPECT_THAT([&] { logits(broken, tokens); }, ThrowsMessage<RunFailed>(HasSubstr("in the embedded tokens")));
}

/// A decoder whose second layer multiplies its result.
DecoderWeights with_large_result(const DecoderConfig& config, at::ScalarType dtype, double factor) {
  DecoderWeights weights = RandomWeights(1, dtype).of(config);
  weights.layers[1].mlp_down = weights.layers[1].mlp_down * factor;
  return weights;
}

TEST(Decoder, NumbersWhoseSquaresOverflowFloat32AreNormalised) {
  const DecoderConfig config = small_config();
  const hooks::Tokens tokens = some_tokens(config, 1, 6);
  Decoder exact(config, with_large_result(config, at::kDouble, 1e25));
  Decoder model(config, with_large_result(config, at::kFloat, 1e25));
  const at::Tensor expected = logits(exact, tokens), found = logits(model, tokens).to(at::kDouble);
  EXPECT_GT(expected.abs().max().item<double>(), 0.1);
  EXPECT_LT(((found - expected).abs().max() / expected.abs().max()).item<double>(), 1e-5);
}

TEST(Decoder, NumbersWhoseSquaresOverflowFloat64AreAnError) {
  const DecoderConfig config = small_config();
  const hooks::Tokens tokens = some_tokens(config, 1, 6);
  Decoder model(config, with_large_result(config, at::kDouble, 1e160));
  EXPECT_THAT([&] { logits(model, tokens); },
              ThrowsMessage<RunFailed>(AllOf(HasSubstr("first after layer 1 at position 0; its square overflows"),
                                             HasSubstr("in the residual stream"))));
}

TEST(Decoder, ASoftCapDoesNotHideLogitsThatOverflow) {
  DecoderConfig config = small_config();
  config.logit_soft_cap = 30;
  const hooks::Tokens tokens = some_tokens(config, 1, 6);
  DecoderWeights weights = RandomWeights(1, at::kFloat).of(config);
  weights.head = weights.head * 1e38;
  weights.final_norm = weights.final_norm * 1e3;
  Decoder model(config, weights);
  const at::Tensor stream = model.forward(tokens, {}, {}).hidden;
  EXPECT_THAT([&] { model.unembed(stream); }, ThrowsMessage<RunFailed>(HasSubstr("output head: NaN or infinity")));
  const at::Tensor losses = model.target_losses(stream.flatten(0, 1), at::zeros({6}, at::kLong));
  EXPECT_TRUE(at::isnan(losses).all().item<bool>());  // the sweep refuses them
}

TEST(Decoder, FusedAttentionRefusesScoresThatMayOverflow) {
  const DecoderConfig config = small_config();
  const hooks::Tokens tokens = some_tokens(config, 1, 6);
  DecoderWeights weights = RandomWeights(1, at::kFloat).of(config);
  weights.layers[0].query = weights.layers[0].query * 1e20;
  weights.layers[0].key = weights.layers[0].key * 1e20;
  Decoder model(config, weights);
  EXPECT_THAT([&] { logits(model, tokens); },
              ThrowsMessage<RunFailed>(AllOf(HasSubstr("layer 0: attention: query up to"), HasSubstr("may overflow"))));
}

TEST(Decoder, WeightsThatDoNotFitAreOurMistake) {
  const DecoderConfig config = small_config();
  const auto with = [&](auto change) {
    DecoderWeights weights = RandomWeights(1, at::kDouble).of(config);
    change(weights);
    Decoder(config, weights);
  };
  EXPECT_THAT([&] { with([](DecoderWeights& w) {
                      w.layers[1].key = at::zeros({3, 16}, at::kDouble);
                    }); },
              ThrowsMessage<InternalError>(HasSubstr("key of layer 1 is [3, 16]; the configuration asks for [8, 16]")));
  EXPECT_THAT([&] { with([](DecoderWeights& w) { w.layers[0].query_bias = at::zeros({16}, at::kDouble); }); },
              ThrowsMessage<InternalError>(HasSubstr("query_bias of layer 0 is present")));
  EXPECT_THAT([&] { with([](DecoderWeights& w) { w.layers[0].mlp_up = w.layers[0].mlp_up.to(at::kFloat); }); },
              ThrowsMessage<InternalError>(HasSubstr("mlp_up of layer 0 is Float; the embedding is Double")));
  EXPECT_THAT([&] { with([](DecoderWeights& w) { w.layers.push_back(w.layers[0]); }); },
              ThrowsMessage<InternalError>(HasSubstr("3 layers")));
}

/// Gives out the layers of its weights, and counts the calls.
class CountingSource : public LayerSource {
 public:
  CountingSource(std::vector<LayerWeights> layers, std::vector<std::int64_t>& asked)
      : layers_(std::move(layers)), asked_(asked) {}
  LayerWeights load(std::int64_t layer) override {
    asked_.push_back(layer);
    return layers_.at(static_cast<std::size_t>(layer));
  }

 private:
  std::vector<LayerWeights> layers_;
  std::vector<std::int64_t>& asked_;
};

TEST_P(EveryOption, SeveralRequestsPassEachLayerTogetherWithTheSameBits) {
  const DecoderConfig& config = GetParam().config;
  DecoderWeights outer = RandomWeights(1, at::kFloat).of(config);
  const std::vector<LayerWeights> layers = std::exchange(outer.layers, {});
  std::vector<std::int64_t> asked;
  Decoder streamed(config, outer, std::make_unique<CountingSource>(layers, asked));
  Decoder held = random_decoder(config, at::kFloat);

  const hooks::Tokens longer = some_tokens(config, 1, 30), shorter = some_tokens(config, 2, 9);
  hooks::ForwardOptions first_layer;
  first_layer.stop_at_layer = 1;
  const hooks::Hooks none;
  const std::vector<hooks::ForwardRequest> requests{
      {&longer, {}, &none}, {&shorter, {}, &none}, {&longer, first_layer, &none}};
  const auto together = streamed.forward_all(requests);
  EXPECT_THAT(asked, ::testing::ElementsAre(0, 1));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_TRUE(at::equal(together[i].hidden, held.forward(*requests[i].tokens, requests[i].options, none).hidden))
        << i;
  }
}

// The stream keeps its gradient although no product of the layer has one.
TEST(Decoder, AStreamWithAGradientKeepsItWhereTheLayerIsReplaced) {
  const DecoderConfig config = small_config();
  Decoder model = random_decoder(config, at::kFloat);
  const hooks::Tokens tokens = some_tokens(config, 1, 6);
  at::Tensor embedded = at::randn({1, 6, 16}).requires_grad_(true);
  hooks::Hooks hooks;
  hooks.replace(hooks::Glob("hook_embed"), [&](const hooks::Site&, const at::Tensor&) { return embedded; });
  for (const char* site : {"blocks.*.attn.hook_z", "blocks.*.mlp.hook_post"}) {
    hooks.replace(hooks::Glob(site),
                  [](const hooks::Site&, const at::Tensor& x) { return at::zeros_like(x.detach()); });
  }
  hooks::ForwardOptions all;
  all.stop_at_layer = config.layers;
  model.forward(tokens, all, hooks).hidden.sum().backward();
  ASSERT_TRUE(embedded.grad().defined());
  EXPECT_TRUE(at::equal(embedded.grad(), at::ones_like(embedded)));
}

TEST(Decoder, TheFirstLayersRunWithoutTheOthers) {
  const DecoderConfig config = small_config();
  DecoderWeights weights = RandomWeights(1, at::kFloat).of(config);
  weights.layers.resize(1);
  Decoder first(config, weights), whole = random_decoder(config, at::kFloat);
  const hooks::Tokens tokens = some_tokens(config, 1, 8);
  hooks::ForwardOptions options;
  options.stop_at_layer = 1;
  EXPECT_TRUE(at::equal(first.forward(tokens, options, {}).hidden, whole.forward(tokens, options, {}).hidden));
  EXPECT_THROW(first.forward(tokens, {}, {}), InternalError);
  EXPECT_THROW(Decoder(config, weights, WeightUse::trained), InternalError);
}

TEST(Decoder, OnlyTheLayersThatAreRunAreAskedFor) {
  const DecoderConfig config = small_config();
  DecoderWeights outer = RandomWeights(1, at::kFloat).of(config);
  const std::vector<LayerWeights> layers = std::exchange(outer.layers, {});
  std::vector<std::int64_t> asked;
  Decoder streamed(config, outer, std::make_unique<CountingSource>(layers, asked));
  hooks::ForwardOptions options;
  options.stop_at_layer = 1;
  streamed.forward(some_tokens(config, 1, 8), options, {});
  EXPECT_THAT(asked, ::testing::ElementsAre(0));
  EXPECT_THROW(Decoder(config, outer), InternalError);
}

}  // namespace decoder_test
}  // namespace gainlens::models
