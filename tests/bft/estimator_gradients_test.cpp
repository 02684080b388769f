// Gradients of every estimator against central differences in float64. The test prints the table that
// docs/estimators.md sums up.
#include "bft/observation_variance.h"
#include "support/central_differences.h"
#include "support/refusal.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace gainlens::bft {
namespace estimator_gradients_test {

using at::Tensor;
using testing::gradient_error;
using ::testing::HasSubstr;
using testing::refusal_of;

constexpr std::int64_t batch = 2, heads = 2, keys = 7, dimensions = 3, model = 5;

/// Tokens, a query and projections; weights and values that may follow from them.
struct Layer {
  Layer() {
    auto generator = at::detail::createCPUGenerator(11);
    const auto normal = [&](at::IntArrayRef shape) {
      return at::normal(0.0, 1.0, shape, generator, at::TensorOptions().dtype(at::kDouble));
    };
    tokens = normal({batch, keys, model});
    query = normal({batch, heads, keys, dimensions});
    key_projection = normal({heads, dimensions, model}) * 0.6;
    value_projection = normal({heads, dimensions, model}) * 0.6;
    token_precision = normal({batch, keys}).square() + 0.5;
    upstream = normal({batch, heads, keys, dimensions});
  }

  Tensor values() const { return at::einsum("bkm,hdm->bhkd", {tokens, value_projection}); }
  Tensor weights() const {
    const Tensor key = at::einsum("bkm,hdm->bhkd", {tokens, key_projection});
    const Tensor scores = query.matmul(key.transpose(-1, -2)) / std::sqrt(static_cast<double>(dimensions));
    const Tensor hidden = at::ones({keys, keys}, at::kBool).triu(1);
    return scores.masked_fill(hidden, -INFINITY).softmax(-1);
  }
  NoisyTokens noise() const { return {query, key_projection, value_projection, token_precision}; }

  Tensor tokens, query, key_projection, value_projection, token_precision, upstream;
};

/// Sum of the defined variances times `upstream`.
Tensor loss_of(Estimator estimator, const Layer& layer, const Tensor& weights, const Tensor& values) {
  const NoisyTokens noise = layer.noise();
  const Tensor variance = observation_variance(estimator, {weights, values}, {.score_noise = 0.4}, &noise);
  const Tensor defined = variance.isnan().logical_not();
  return (variance.masked_select(defined) * layer.upstream.masked_select(defined)).sum();
}

TEST(EstimatorGradients, AgreeWithCentralDifferences) {
  fmt::print("{:<18} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "estimator", "weights", "values", "q", "W_K", "W_V",
             "tokens");
  for (const Estimator estimator : all_estimators) {
    std::string line = fmt::format("{:<18}", name_of(estimator));
    const auto note = [&](double error) {
      EXPECT_LT(error, 1e-7) << name_of(estimator);
      line += fmt::format(" {:>9.1e}", error);
    };
    {
      const Layer layer;
      Tensor weights = layer.weights(), values = layer.values();
      // The first query sees one key: its weight is 1 at n_eff = 1, where naive is not defined on either side.
      Tensor seen = at::ones({keys, keys}, at::kBool).tril();
      seen[0].fill_(false);
      const auto loss = [&] { return loss_of(estimator, layer, weights, values); };
      note(gradient_error(weights, loss, seen.expand({batch, heads, keys, keys}).contiguous()));
      note(gradient_error(values, loss, at::ones_like(values).to(at::kBool)));
    }
    // Through the softmax and the values too; for delta also through u and W_V of the formula.
    Layer layer;
    const auto loss = [&] { return loss_of(estimator, layer, layer.weights(), layer.values()); };
    for (Tensor* leaf : {&layer.query, &layer.key_projection, &layer.value_projection, &layer.tokens})
      note(gradient_error(*leaf, loss, at::ones_like(*leaf).to(at::kBool)));
    fmt::print("{}\n", line);
  }
}

TEST(EstimatorGradients, AQueryThatSeesNothingLeavesTheOthersAlone) {
  const Layer layer;
  for (const Estimator estimator : all_estimators) {
    Tensor weights = layer.weights().clone();
    weights.select(2, 4).zero_();  // query 4 sees no key
    weights.requires_grad_();
    Tensor values = layer.values().requires_grad_();
    const NoisyTokens noise = layer.noise();
    const Tensor variance = observation_variance(estimator, {weights, values}, {.score_noise = 0.4}, &noise);
    EXPECT_TRUE(variance.select(2, 4).isnan().all().item<bool>()) << name_of(estimator);
    EXPECT_FALSE(variance.slice(2, 1, 4).isnan().any().item<bool>()) << name_of(estimator);
    EXPECT_EQ(variance.select(2, 0).isnan().all().item<bool>(), estimator == Estimator::reml_naive);
    at::nan_to_num(variance).sum().backward();
    EXPECT_FALSE(weights.grad().isnan().any().item<bool>()) << name_of(estimator);
    EXPECT_FALSE(values.grad().isnan().any().item<bool>()) << name_of(estimator);
  }
}

TEST(EstimatorGradients, ALargeCommonValueDoesNotCancel) {
  const Layer layer;
  const NoisyTokens noise = layer.noise();
  for (const Estimator estimator : all_estimators) {
    const auto variance = [&](double shift) {
      return at::nan_to_num(
          observation_variance(estimator, {layer.weights(), layer.values() + shift}, {.score_noise = 0.4}, &noise));
    };
    const Tensor expected = variance(0);
    EXPECT_LT(((variance(1e6) - expected).abs().max() / expected.abs().max()).item<double>(), 1e-8)
        << name_of(estimator);
  }
}

TEST(ObservationVariance, ASumOfWeightsThatCancelsIsRaisedAsForOneQuery) {
  const std::vector<double> weights = {0.5, -0.75, 0.25 + 1e-9}, values = {7, 9, 4};
  const EstimatorOptions options{.least_weight_share = 0.1};
  const Observation one = observe(Estimator::sandwich, {weights, values, 1}, options);
  ASSERT_TRUE(one.weight_sum_raised);
  const Tensor all = observation_variance(
      Estimator::sandwich,
      {at::tensor(weights, at::kDouble).view({1, 1, 1, 3}), at::tensor(values, at::kDouble).view({1, 1, 3, 1})},
      options);
  EXPECT_NEAR(all.item<double>() / one.variance[0], 1, 1e-12);
  // negative sums keep their sign
  EXPECT_DOUBLE_EQ(
      observe(Estimator::sandwich, {std::vector<double>{-0.5, 0.5 - 1e-9}, std::vector<double>{1, 2}, 1}, options)
          .estimate[0],
      (-0.5 + 2 * (0.5 - 1e-9)) / (-0.1 * (1 - 1e-9)));
}

TEST(ObservationPrecision, IsTheInverseWithinItsBounds) {
  const Tensor variance = at::tensor({0.5, 0.0, 1e5, double(NAN)}, at::kDouble);
  const Tensor precision = observation_precision(variance, {.least_precision = 1e-3, .most_precision = 100});
  EXPECT_DOUBLE_EQ(precision[0].item<double>(), 2);
  EXPECT_DOUBLE_EQ(precision[1].item<double>(), 100);
  EXPECT_DOUBLE_EQ(precision[2].item<double>(), 1e-3);
  EXPECT_TRUE(std::isnan(precision[3].item<double>()));
}

TEST(ObservationVariance, KeepsFloat32) {
  const Layer layer;
  const NoisyTokens noise = layer.noise();
  const Tensor exact = observation_variance(Estimator::reml, {layer.weights(), layer.values()});
  const Tensor single =
      observation_variance(Estimator::reml, {layer.weights().to(at::kFloat), layer.values().to(at::kFloat)});
  EXPECT_EQ(single.scalar_type(), at::kFloat);
  EXPECT_LT(((single - exact).abs() / exact).max().item<double>(), 1e-5);
}

TEST(ObservationVariance, WrongTensorsAreNamed) {
  const Layer layer;
  const auto refused = [&](Estimator estimator, const AttentionWeights& attention) {
    return refusal_of([&] { observation_variance(estimator, attention); });
  };
  const Tensor weights = layer.weights(), values = layer.values();
  EXPECT_THAT(refused(Estimator::reml, {weights[0], values}), HasSubstr("the weights have shape [2, 7, 7]; must be"));
  EXPECT_THAT(refused(Estimator::reml, {weights, values.slice(2, 0, 3)}),
              HasSubstr("values has shape [2, 2, 3, 3]; must be [2, 2, 7, 3]"));
  EXPECT_THAT(refused(Estimator::reml, {weights, values.to(at::kFloat)}),
              HasSubstr("values is Float; must be Double as the weights"));
  EXPECT_THAT(refused(Estimator::delta, {weights, values}), HasSubstr("delta without tokens and projections"));
  EXPECT_THAT(refused(Estimator::kish, {weights.slice(2, 0, 3), values}), HasSubstr("3 queries and 7 keys; give"));
}

}  // namespace estimator_gradients_test
}  // namespace gainlens::bft
