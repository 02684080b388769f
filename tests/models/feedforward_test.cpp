#include "models/decoder/feedforward.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::models {
namespace {

at::Tensor doubles(std::initializer_list<double> values, at::IntArrayRef shape) {
  return at::tensor(at::ArrayRef<double>(values), at::kDouble).view(shape);
}

/// Three experts of width 1 on a stream of width 1. Expert e computes (e + 1) relu(x) x.
struct ThreeExperts {
  DecoderConfig config;
  LayerWeights weights;

  LayerProjections projections() const {
    LayerWeights taken = weights;
    return {taken, WeightUse::frozen};
  }

  ThreeExperts() {
    config.width = 1;
    config.activation = Activation::relu;
    config.experts = {.count = 3, .per_token = 2, .width = 1};
    weights.router = doubles({1, 2, 3}, {3, 1});
    weights.expert_gate = weights.expert_up = at::ones({3, 1, 1}, at::kDouble);
    weights.expert_down = doubles({1, 2, 3}, {3, 1, 1});
  }
};

TEST(ExpertFeedforward, ByHand) {
  const ThreeExperts model;
  // x = 1: logits 1, 2, 3; experts 1 and 2 are chosen, with softmax(2, 3).
  const double second = 1 / (1 + std::exp(1.0));
  const at::Tensor output = expert_feedforward(model.config, model.projections(), 0, doubles({1}, {1, 1, 1}), {});
  EXPECT_NEAR(output.item<double>(), second * 2 + (1 - second) * 3, 1e-12);
}

TEST(ExpertFeedforward, WithoutNormalisationTheSharesAreOfAllExperts) {
  ThreeExperts model;
  model.config.experts.normalised = false;
  const double total = std::exp(1.0) + std::exp(2.0) + std::exp(3.0);
  const at::Tensor output = expert_feedforward(model.config, model.projections(), 0, doubles({1}, {1, 1, 1}), {});
  EXPECT_NEAR(output.item<double>(), (2 * std::exp(2.0) + 3 * std::exp(3.0)) / total, 1e-12);
}

TEST(ExpertFeedforward, ReplacedWeightsChooseTheExperts) {
  const ThreeExperts model;
  hooks::Hooks hooks;
  hooks.replace(hooks::Glob("blocks.0.mlp.hook_expert_weights"), [](const hooks::Site&, const at::Tensor& shares) {
    return at::zeros_like(shares).index_fill(-1, at::zeros({1}, at::kLong), 10);
  });
  EXPECT_DOUBLE_EQ(
      expert_feedforward(model.config, model.projections(), 0, doubles({1}, {1, 1, 1}), hooks).item<double>(), 10);
}

TEST(ExpertFeedforward, TheSharedExpertIsAddedForEveryToken) {
  ThreeExperts model;
  model.config.experts.shared_width = 2;
  model.weights.shared_gate = doubles({1, 2}, {2, 1});
  model.weights.shared_up = doubles({3, -1}, {2, 1});
  model.weights.shared_down = doubles({0.5, 0.25}, {1, 2});
  const at::Tensor input = doubles({1, 2}, {1, 2, 1});
  // shared(x) = (0.5 * 1 * 3 - 0.25 * 2 * 1) x^2 = x^2. The routed part is that of ByHand.
  const at::Tensor routed = expert_feedforward(ThreeExperts().config, ThreeExperts().projections(), 0, input, {});
  const at::Tensor open = expert_feedforward(model.config, model.projections(), 0, input, {}) - routed;
  EXPECT_NEAR(open.flatten()[0].item<double>(), 1, 1e-12);
  EXPECT_NEAR(open.flatten()[1].item<double>(), 4, 1e-12);
  // With a score of -x the output is multiplied by 1 / (1 + e^x).
  model.config.experts.shared_score = true;
  model.weights.shared_score = doubles({-1}, {1, 1});
  const at::Tensor gated = expert_feedforward(model.config, model.projections(), 0, input, {}) - routed;
  EXPECT_NEAR(gated.flatten()[0].item<double>(), 1 / (1 + std::exp(1.0)), 1e-12);
  EXPECT_NEAR(gated.flatten()[1].item<double>(), 4 / (1 + std::exp(2.0)), 1e-12);
}

TEST(ExpertFeedforward, TheSharedExpertInBlocksOfPositions) {
  DecoderConfig config;
  config.width = 6;
  config.experts = {.count = 2, .per_token = 1, .width = 3, .shared_width = 5, .shared_score = true};
  at::manual_seed(1);
  LayerWeights weights;
  const TensorsByField tensors = tensors_by_field(weights);
  for (const WeightField& field : layer_fields(config, 0)) {
    if (field.wanted &&
        (field.name.starts_with("shared") || field.name.starts_with("expert") || field.name == "router"))
      *tensors.at(field.name) = at::randn(field.shape);
  }
  const at::Tensor input = at::randn({1, 1100, 6});  // more than two blocks
  LayerWeights copy = weights;
  const at::Tensor whole = expert_feedforward(config, {copy, WeightUse::trained}, 0, input, {});
  const at::Tensor blocks = expert_feedforward(config, {weights, WeightUse::frozen}, 0, input, {});
  EXPECT_LT((whole - blocks).abs().max().item<double>(), 1e-4);
}

TEST(DenseFeedforward, AClippedGateByHand) {
  ThreeExperts model;
  model.config.mlp_width = 1;
  model.config.clipped_gate = ClippedGate{.limit = 2, .alpha = 1};
  model.weights.mlp_gate = model.weights.mlp_down = doubles({1}, {1, 1});
  model.weights.mlp_up = doubles({-1}, {1, 1});
  // x = 3: the gate is clipped to 2, the up part to -2; the result is (-2 + 1) 2 sigmoid(2).
  EXPECT_NEAR(dense_feedforward(model.config, model.projections(), 0, doubles({3}, {1, 1, 1}), {}, {}).item<double>(),
              -2 / (1 + std::exp(-2.0)), 1e-12);
  // x = -3: the gate is not clipped from below; the result is (2 + 1) (-3) sigmoid(-3).
  EXPECT_NEAR(dense_feedforward(model.config, model.projections(), 0, doubles({-3}, {1, 1, 1}), {}, {}).item<double>(),
              -9 / (1 + std::exp(3.0)), 1e-12);
}

TEST(DenseFeedforward, WithoutAGateTheActivationIsOnUp) {
  ThreeExperts model;
  model.config.mlp_width = 1;
  model.config.gated_mlp = false;
  model.weights.mlp_up = doubles({2}, {1, 1});
  model.weights.mlp_down = doubles({5}, {1, 1});
  EXPECT_DOUBLE_EQ(
      dense_feedforward(model.config, model.projections(), 0, doubles({3}, {1, 1, 1}), {}, {}).item<double>(), 30);
  EXPECT_DOUBLE_EQ(
      dense_feedforward(model.config, model.projections(), 0, doubles({-3}, {1, 1, 1}), {}, {}).item<double>(), 0);
}

}  // namespace
}  // namespace gainlens::models
