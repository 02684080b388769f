// What the filter must do at its limits, whatever the numbers are.
#include "bft/filter_step.h"
#include "bft/initial_precision.h"
#include "bft/observation_variance.h"
#include "bft/packed_observation.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::bft {
namespace filter_limits_test {

using at::Tensor;

constexpr auto real = at::kDouble;

/// No bound is met.
FilterOptions unbounded() {
  FilterOptions options;
  options.least_precision = 1e-12;
  options.most_precision = 1e12;
  return options;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  return (a - b).abs().max().item<double>();
}

TEST(FilterLimits, OneKeyGivesAtMostTwiceTheDimensions) {
  at::manual_seed(1);
  for (const std::int64_t dims : {1, 8, 64}) {
    const Tensor q = at::randn({5, 2, dims}, real), precision = at::rand({5, 2 * dims}, real) + 0.1;
    const kernels::PackedBounds alone{0, 1, 2, 3, 4, 5}, together{0, 5};
    const Tensor one = observe_packed(q, q, q, precision, alone, {}, unbounded()).precision;
    EXPECT_LT(largest_difference(one, at::full_like(one, 2.0 * static_cast<double>(dims))), 1e-9) << dims;
    // Many keys, of which one has all the weight: n_eff is near 1, and S adds to the variance.
    const Tensor sharp = observe_packed(q * 1e3, q, q, precision, together, {}, unbounded()).precision;
    EXPECT_LE(sharp.max().item<double>(), 2.0 * static_cast<double>(dims) * (1 + 1e-6)) << dims;
  }
}

TEST(FilterLimits, WithoutProcessNoiseTheJacobianAloneActs) {
  const Tensor posterior = at::rand({4, 3}, real) + 0.5, J = at::randn({4, 3}, real) * 0.3;
  FilterOptions none = unbounded(), little = unbounded();
  none.most_process_noise = 0;
  EXPECT_TRUE(at::equal(predicted_precision(posterior, stretch(J), {}, none), posterior / stretch(J)));
  const Tensor found = predicted_precision(posterior, stretch(J), at::full({3}, -40.0, real), little);
  EXPECT_LT(largest_difference(found, posterior / stretch(J)), 1e-12);
  EXPECT_TRUE(at::equal(predicted_precision(posterior, {}, {}, none), posterior));
  const Tensor much = predicted_precision(posterior, stretch(J), at::full({3}, 60.0, real), little);
  EXPECT_LT((much * process_noise(at::full({3}, 60.0, real), little) - 1).abs().max().item<double>(), 0.5);
}

TEST(FilterLimits, AJacobianOfMinusOneIsClipped) {
  const Tensor J = at::tensor({-1.0, -0.95, -1.05, -0.9, 0.0}, real);
  const Tensor expected = at::tensor({0.01, 0.01, 0.01, 0.01, 1.0}, real);
  EXPECT_LT(largest_difference(stretch(J), expected), 1e-12);
  const Tensor posterior = at::ones({5}, real);
  FilterOptions options = unbounded();
  options.most_process_noise = 0;
  EXPECT_NEAR(predicted_precision(posterior, stretch(J), {}, options)[0].item<double>(), 100, 1e-9);
}

TEST(FilterLimits, PrecisionsStayWithinTheirBounds) {
  FilterOptions options;
  const Tensor tiny = at::full({2}, 1e-9, real), huge = at::full({2}, 1e9, real);
  EXPECT_EQ(posterior_precision(tiny, tiny, options).max().item<double>(), options.least_precision);
  EXPECT_EQ(posterior_precision(huge, huge, options).min().item<double>(), options.most_precision);
  EXPECT_EQ(predicted_precision(huge, {}, at::full({2}, -30.0, real), options).min().item<double>(),
            options.most_precision);
  EXPECT_TRUE(at::isnan(posterior_precision(at::full({1}, NAN, real), tiny.slice(0, 0, 1), options)).item<bool>());
}

TEST(FilterLimits, SandwichHasNoScaleOfItsOwn) {
  at::manual_seed(2);
  const Tensor weights = at::rand({1, 1, 4, 6}, real).softmax(-1), values = at::randn({1, 1, 6, 3}, real);
  const Tensor visible = at::ones({4, 6}, at::kBool);
  const auto variance = [&](Estimator estimator, double of_weights, double of_values) {
    return observation_variance(estimator, {weights * of_weights, values * of_values, visible});
  };
  const Tensor once = variance(Estimator::sandwich, 1, 1);
  EXPECT_LT(largest_difference(variance(Estimator::sandwich, 0.01, 1), once), 1e-12);
  EXPECT_LT(largest_difference(variance(Estimator::sandwich, 1, 7) / 49, once), 1e-12);
  // The prior of reml has the scale of the values at the start of a training.
  const Tensor reml = variance(Estimator::reml, 1, 1);
  EXPECT_GT(largest_difference(variance(Estimator::reml, 1, 7) / 49, reml), 0.01);
}

TEST(FilterLimits, DiscountSettlesAtOneGainWhateverTheEvidence) {
  FilterOptions options = unbounded();
  options.predict = Predict::discount;
  for (const double observed : {0.1, 3.0, 500.0}) {
    Tensor precision = at::full({1}, 2.0, real);
    const Tensor evidence = at::full({1}, observed, real);
    for (int layer = 0; layer < 2000; ++layer)
      precision = predicted_precision(posterior_precision(precision, evidence, options), {}, {}, options);
    EXPECT_NEAR(gain(precision, evidence).item<double>(), 1 - options.discount, 1e-9) << observed;
  }
}

TEST(FilterLimits, ProcessNoiseSettlesWhereTheEquationSays) {
  const FilterOptions options = unbounded();
  for (const double observed : {0.1, 3.0, 500.0}) {
    for (const double noise : {1e-3, 0.1}) {
      const Tensor logits = at::full({1}, std::log(std::expm1(noise)), real), evidence = at::full({1}, observed, real);
      Tensor precision = at::full({1}, 2.0, real);
      for (int layer = 0; layer < 5000; ++layer)
        precision = predicted_precision(posterior_precision(precision, evidence, options), {}, logits, options);
      const double expected = (-observed + std::sqrt(observed * observed + 4 * observed / noise)) / 2;
      EXPECT_NEAR(precision.item<double>() / expected, 1, 1e-8) << observed << " " << noise;
    }
  }
}

TEST(FilterLimits, WithoutProcessNoiseThePrecisionGrowsWithEveryLayer) {
  FilterOptions options = unbounded();
  options.most_process_noise = 0;
  Tensor precision = at::ones({1}, real);
  const Tensor evidence = at::full({1}, 2.0, real);
  for (int layer = 1; layer <= 10; ++layer) {
    precision = predicted_precision(posterior_precision(precision, evidence, options), {}, {}, options);
    EXPECT_NEAR(precision.item<double>(), 1 + 2.0 * layer, 1e-12);
  }
}

TEST(FilterLimits, TheLikelihoodOfEmNeverFalls) {
  at::manual_seed(5);
  for (const double prior_strength : {0.0, 1.0, 20.0}) {
    const Tensor items = at::randint(30, {400}, at::kLong), truth = at::rand({30}, real) * 20 + 0.2,
                 observed = at::rand({400, 4}, real) * 10 + 0.1;
    const Tensor variance = truth.index_select(0, items).unsqueeze(1).reciprocal() + observed.reciprocal();
    const Tensor innovation = at::randn({400, 4}, real) * variance.sqrt();
    Tensor precision = at::ones({31}, real);  // item 30 does not occur
    EmOptions options;
    options.prior_strength = prior_strength;
    for (int i = 0; i < 200; ++i) {
      const EmStep step = em_step(precision, items, innovation, observed, options);
      EXPECT_GE(step.likelihood_after, step.likelihood_before) << i;
      precision = step.precision;
    }
    EXPECT_EQ(precision[30].item<double>(), 1);
    // At the optimum another step changes little, and items of a large true precision have a larger one.
    const EmStep last = em_step(precision, items, innovation, observed, options);
    EXPECT_LT(last.likelihood_after - last.likelihood_before, 0.05);
    const Tensor low = precision.slice(0, 0, 30).masked_select(truth < 3),
                 high = precision.slice(0, 0, 30).masked_select(truth > 10);
    EXPECT_LT(low.median().item<double>(), high.median().item<double>());
  }
}

TEST(FilterLimits, EmMovesFromAPrecisionBeyondItsBound) {
  // One item of eleven occurs; all begin above the bound.
  const Tensor items = at::zeros({50}, at::kLong), innovation = at::ones({50, 2}, real);
  const EmStep step = em_step(at::full({11}, 300, real), items, innovation, at::full({50, 2}, 90, real));
  EXPECT_LT(step.precision[0].item<double>(), 50);
  EXPECT_EQ(step.precision[5].item<double>(), 100);
  EXPECT_GT(step.likelihood_after, step.likelihood_before);
}

}  // namespace filter_limits_test
}  // namespace gainlens::bft
