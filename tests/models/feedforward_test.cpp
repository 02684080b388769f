#include "models/decoder/feedforward.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::models {
namespace feedforward_test {

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

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

TEST(ExpertFeedforward, SigmoidScoresAndTheirCorrection) {
  ThreeExperts model;
  model.config.experts.scores = RouterScores::sigmoid;
  model.config.experts.scale = 2.5;
  const auto output = [&] {
    return expert_feedforward(model.config, model.projections(), 0, doubles({1}, {1, 1, 1}), {}).item<double>();
  };
  const double first = sigmoid(1), second = sigmoid(2), third = sigmoid(3);
  EXPECT_NEAR(output(), 2.5 * (2 * second + 3 * third) / (second + third), 1e-12);
  model.config.experts.normalised = false;
  EXPECT_NEAR(output(), 2.5 * (2 * second + 3 * third), 1e-12);
  // Expert 0 replaces expert 1. Its weight is its score without the correction.
  model.weights.router_correction = doubles({0.5, 0, 0}, {3});
  EXPECT_NEAR(output(), 2.5 * (first + 3 * third), 1e-12);
}

TEST(ExpertFeedforward, ATokenChoosesInTheBestGroups) {
  ThreeExperts model;
  Experts& experts = model.config.experts;
  experts = {.count = 6, .per_token = 2, .width = 1, .normalised = false, .groups = 3, .kept_groups = 1};
  model.weights.router = doubles({0, 5, 4, 4, 3, -9}, {6, 1});
  model.weights.expert_gate = model.weights.expert_up = at::ones({6, 1, 1}, at::kDouble);
  model.weights.expert_down = doubles({1, 10, 100, 1000, 1e4, 1e5}, {6, 1, 1});
  const auto output = [&] {
    return expert_feedforward(model.config, model.projections(), 0, doubles({1}, {1, 1, 1}), {}).item<double>();
  };
  // By their best expert the group of 0 and 5 wins; by the sum of its two experts that of 4 and 4.
  const double total = 1 + std::exp(5) + 2 * std::exp(4) + std::exp(3) + std::exp(-9);
  EXPECT_NEAR(output(), (1 + 10 * std::exp(5)) / total, 1e-10);
  experts.group_leaders = 2;
  EXPECT_NEAR(output(), 1100 * std::exp(4) / total, 1e-9);
  // In two groups, the best two experts: 5 and a 4.
  experts.kept_groups = 2;
  model.weights.router = doubles({0, 5, 4, 3, 3, -9}, {6, 1});
  const double other = 1 + std::exp(5) + std::exp(4) + 2 * std::exp(3) + std::exp(-9);
  EXPECT_NEAR(output(), (10 * std::exp(5) + 100 * std::exp(4)) / other, 1e-10);
}

TEST(ExpertFeedforward, AWideRouterIsNotRoundedToBfloat16) {
  ThreeExperts model;
  for (at::Tensor* tensor :
       {&model.weights.router, &model.weights.expert_gate, &model.weights.expert_up, &model.weights.expert_down})
    *tensor = tensor->to(at::kBFloat16);
  // In bfloat16 the logits of the experts 1 and 2 are both 129/64.
  model.weights.router = doubles({0, 254.0 / 128, 255.0 / 128}, {3, 1}).to(at::kBFloat16);
  model.config.experts.per_token = 1;
  const at::Tensor input = doubles({130.0 / 128}, {1, 1, 1}).to(at::kBFloat16);
  ASSERT_TRUE(at::equal((model.weights.router * input.flatten())[1], (model.weights.router * input.flatten())[2]));
  model.config.experts.router_wide = true;
  hooks::Hooks hooks;
  at::Tensor seen;
  hooks.observe(hooks::Glob("blocks.0.mlp.hook_expert_weights"), [&](const auto&, const auto& x) { seen = x; });
  const at::Tensor output = expert_feedforward(model.config, model.projections(), 0, input, hooks);
  EXPECT_EQ(output.scalar_type(), at::kBFloat16);
  EXPECT_NEAR(output.item<double>(), 3 * std::pow(130.0 / 128, 2), 0.02);
  EXPECT_EQ(seen.scalar_type(), at::kFloat);
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

}  // namespace feedforward_test
}  // namespace gainlens::models
