// The updates of the arms textbook and least-error against simulated errors, and against each other at their limits.
#include "bft/filter_step.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::bft {
namespace stream_updates_test {

using at::Tensor;

FilterOptions unbounded() {
  FilterOptions options;
  options.least_precision = 1e-12;
  options.most_precision = 1e12;
  return options;
}

Tensor number(double value) {
  return at::full({1}, value, at::kDouble);
}

/// h is known; x = h + d and e = x + f, with d and f of these precisions.
struct Situation {
  double hidden, precision, observed;
};

const Situation situations[] = {{0, 2, 3}, {0.5, 2, 3}, {-1.5, 2, 3}, {1, 0.2, 40}, {1, 60, 0.5}};

class Simulation {
 public:
  explicit Simulation(const Situation& given) : hidden_(given.hidden) {
    const at::Generator generator = at::detail::createCPUGenerator(7);
    const auto drawn = [&](double precision) {
      return at::normal(0.0, 1 / std::sqrt(precision), {100000}, generator, at::TensorOptions().dtype(at::kDouble));
    };
    truth_ = given.hidden + drawn(given.precision);
    estimate_ = truth_ + drawn(given.observed);
  }
  /// The mean squared error of h + K e.
  double error_of_sum(double gain) const { return error(hidden_ + gain * estimate_); }
  /// The mean squared error of h + K (e - h).
  double error_of_correction(double gain) const { return error(hidden_ + gain * (estimate_ - hidden_)); }

 private:
  double error(const Tensor& result) const { return (result - truth_).square().mean().item<double>(); }
  double hidden_;
  Tensor truth_, estimate_;
};

TEST(StreamUpdates, TheGainOfLeastErrorIsLeastForTheSum) {
  for (const Situation& given : situations) {
    const Simulation simulation(given);
    const Tensor precision = number(given.precision),
                 counted = least_error_precision(number(given.observed), number(given.hidden));
    const double best = gain(precision, counted).item<double>(), error = simulation.error_of_sum(best);
    const std::string where =
        fmt::format("h {} lambda {} lambda_obs {}", given.hidden, given.precision, given.observed);
    for (const double other : {best - 0.05, best + 0.05}) EXPECT_GT(simulation.error_of_sum(other), error) << where;
    const double expected = 1 / posterior_precision(precision, counted, unbounded()).item<double>();
    EXPECT_NEAR(error / expected, 1, 0.02) << where;
    // What the layer of the paper does there.
    const double usual = gain(precision, number(given.observed)).item<double>();
    if (given.hidden == 0) continue;
    EXPECT_GT(simulation.error_of_sum(usual), error) << where;
  }
}

TEST(StreamUpdates, TheGainOfTheTextbookIsLeastForTheCorrection) {
  for (const Situation& given : situations) {
    const Simulation simulation(given);
    const Tensor precision = number(given.precision), observed = number(given.observed);
    const double best = gain(precision, observed).item<double>(), error = simulation.error_of_correction(best);
    for (const double other : {best - 0.05, best + 0.05}) EXPECT_GT(simulation.error_of_correction(other), error);
    EXPECT_NEAR(error * posterior_precision(precision, observed, unbounded()).item<double>(), 1, 0.02);
    // No gain for the sum is as good, but where h is 0.
    if (given.hidden == 0) continue;
    const double counted = gain(precision, least_error_precision(observed, number(given.hidden))).item<double>();
    EXPECT_GT(simulation.error_of_sum(counted), error);
  }
}

TEST(StreamUpdates, WhereTheStreamIsNothingBothGainsAreTheSame) {
  const Tensor observed = at::rand({5, 3}, at::kDouble) + 0.1;
  EXPECT_TRUE(at::allclose(least_error_precision(observed, at::zeros({5, 3}, at::kDouble)), observed));
  // Where it is large, the estimate says nothing of the difference to it.
  EXPECT_LT(least_error_precision(observed, at::full({5, 3}, 1e4, at::kDouble)).max().item<double>(), 1e-7);
}

}  // namespace stream_updates_test
}  // namespace gainlens::bft
