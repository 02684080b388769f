// The fused steps against the separate functions in float64.
#include "bft/fused_step.h"

#include "bft/filter_step.h"
#include "bft/observation_variance.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <vector>

namespace gainlens::bft {
namespace fused_step_test {

using at::Tensor;

constexpr std::int64_t rows = 301, heads = 2, dims = 5, width = heads * dims;

struct Case {
  Estimator estimator;
  double strength, prior_strength, most_precision;
};

Tensor leaf(const Tensor& x, at::ScalarType type) {
  return x.detach().to(type).requires_grad_();
}

void expect_near(const Tensor& found, const Tensor& expected, const char* what) {
  const double scale = expected.abs().max().item<double>();
  EXPECT_LT((found.to(at::kDouble) - expected).abs().max().item<double>(), 2e-6 * scale) << what;
}

TEST(FusedStep, UpdateIsThatOfTheSeparateFunctions) {
  at::manual_seed(4);
  for (const Case& given :
       {Case{Estimator::reml, 1, 1, 1e6}, Case{Estimator::reml, 0.3, 2, 8}, Case{Estimator::reml_conjugate, 1, 1, 12},
        Case{Estimator::reml_conjugate, 0.7, 0.5, 1e6}}) {
    FilterOptions options;
    options.estimator = given.estimator;
    options.prior_strength = given.prior_strength;
    options.most_precision = given.most_precision;
    options.least_precision = 0.9;
    const Tensor e = at::randn({rows, width}), n = at::rand({rows, heads}) * 9 + 1,
                 s = at::rand({rows, width}).square(), l = at::rand({rows, width}) * 5 + 0.1,
                 of_scaled = at::randn({rows, width}), of_posterior = at::randn({rows, width});
    const auto leaves = [&](at::ScalarType type) {
      return std::vector<Tensor>{leaf(e, type), leaf(n, type), leaf(s, type), leaf(l, type)};
    };
    const std::vector<Tensor> fast = leaves(at::kFloat), slow = leaves(at::kDouble);
    const auto [scaled, posterior] = fused_update({fast[0], fast[1], fast[2]}, fast[3], options, given.strength);
    (scaled * of_scaled + posterior * of_posterior).sum().backward();

    const Tensor variance = variance_of_moments(options.estimator, slow[1].unsqueeze(2),
                                                slow[2].view({rows, heads, dims}), options.estimator_options(), dims);
    const Tensor observed = observation_precision(variance, options.estimator_options()).flatten(1);
    const Tensor expected = slow[0] * (1 + given.strength * (gain(slow[3], observed) - 1)),
                 expected_posterior = posterior_precision(slow[3], observed, options);
    (expected * of_scaled.to(at::kDouble) + expected_posterior * of_posterior.to(at::kDouble)).sum().backward();
    expect_near(scaled, expected, "K e");
    expect_near(posterior, expected_posterior, "lambda'");
    const char* const names[] = {"e", "n_eff", "S", "lambda"};
    for (std::size_t i = 0; i < 4; ++i) expect_near(fast[i].grad(), slow[i].grad(), names[i]);
  }
}

TEST(FusedStep, PredictIsThatOfTheSeparateFunctions) {
  at::manual_seed(6);
  for (const double most : {1e6, 3.0}) {
    FilterOptions options;
    options.most_precision = most;
    const Tensor l = at::rand({rows, width}) * 5 + 0.1, j = at::randn({rows, width}) * 0.7, q = at::rand({width}) * 0.2,
                 upstream = at::randn({rows, width});
    const auto leaves = [&](at::ScalarType type) {
      return std::vector<Tensor>{leaf(l, type), leaf(j, type), leaf(q, type)};
    };
    const std::vector<Tensor> fast = leaves(at::kFloat), slow = leaves(at::kDouble);
    const auto [predicted, sum] = fused_predict(fast[0], fast[1], fast[2], options);
    (predicted * upstream).sum().backward();
    EXPECT_FALSE(sum.requires_grad());
    const Tensor factor = stretch(slow[1]);
    const Tensor expected =
        (factor / slow[0] + slow[2]).reciprocal().clamp(options.least_precision, options.most_precision);
    (expected * upstream.to(at::kDouble)).sum().backward();
    expect_near(predicted, expected, "lambda''");
    expect_near(sum, factor.sum(0), "sum of stretches");
    const char* const names[] = {"lambda'", "J", "Q"};
    for (std::size_t i = 0; i < 3; ++i) expect_near(fast[i].grad(), slow[i].grad(), names[i]);
  }
}

TEST(FusedStep, NanStaysNan) {
  const FilterOptions options;
  const Tensor nan = at::full({1, 2}, NAN), one = at::ones({1, 2});
  EXPECT_TRUE(at::isnan(fused_update({one, at::ones({1, 1}), nan}, one, options, 1).second).all().item<bool>());
  EXPECT_TRUE(at::isnan(fused_update({one, at::ones({1, 1}), one}, nan, options, 1).first).all().item<bool>());
  EXPECT_TRUE(at::isnan(fused_predict(one, nan, at::ones({2}), options).first).all().item<bool>());
}

}  // namespace fused_step_test
}  // namespace gainlens::bft
