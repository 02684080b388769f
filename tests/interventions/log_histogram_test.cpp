#include "interventions/log_histogram.h"

#include "core/error.h"
#include "core/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace gainlens::interventions {
namespace log_histogram_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Skewed, and wider than a bin by far.
std::vector<double> some_logarithms(std::size_t count) {
  Random random(5);
  std::vector<double> logarithms(count);
  for (double& one : logarithms) one = 4 * std::log(random.uniform() + 1e-9) + 7 * random.uniform();
  return logarithms;
}

double exact_mean(const std::vector<double>& logarithms, double log_lambda) {
  double sum = 0;
  for (const double one : logarithms) sum += std::exp(one) / (std::exp(log_lambda) + std::exp(one));
  return sum / static_cast<double>(logarithms.size());
}

TEST(LogHistogram, HasTheMeansOfAllNumbers) {
  const std::vector<double> logarithms = some_logarithms(5000);
  LogHistogram histogram;
  histogram.add({logarithms.data(), 1000});
  histogram.add({logarithms.data() + 1000, 4000});
  EXPECT_EQ(histogram.count(), 5000);
  for (const double log_lambda : {-20.0, -3.0, 0.0, 0.7, 5.0, 30.0})
    EXPECT_NEAR(histogram.mean_gain(log_lambda), exact_mean(logarithms, log_lambda), 1e-8) << log_lambda;
}

TEST(LogHistogram, SolvesForTheMean) {
  const std::vector<double> logarithms = some_logarithms(3000);
  LogHistogram histogram;
  histogram.add(logarithms);
  for (const double mean : {0.001, 0.2, 0.5, 0.99})
    EXPECT_NEAR(exact_mean(logarithms, histogram.solve(mean).value()), mean, 1e-6) << mean;
}

TEST(LogHistogram, OneNumberIsSolvedByHand) {
  LogHistogram histogram;
  histogram.add(std::vector<double>{2});
  EXPECT_DOUBLE_EQ(histogram.mean_gain(2), 0.5);
  EXPECT_NEAR(histogram.solve(0.5).value(), 2, 1e-11);
  EXPECT_NEAR(histogram.solve(1 / (1 + std::exp(1.0))).value(), 3, 1e-11);
}

TEST(LogHistogram, MeansThatNoLambdaHasHaveNoSolution) {
  LogHistogram histogram;
  histogram.add(std::vector<double>{0, 1});
  for (const double mean : {0.0, 1.0, -0.1, 1.1, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_FALSE(histogram.solve(mean)) << mean;
}

TEST(LogHistogram, NumbersOutsideAreNamed) {
  for (const double number : {64.0, -65.0, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THAT([&] { LogHistogram().add(std::vector<double>{number}); },
                ThrowsMessage<RunFailed>(HasSubstr("lambda_obs: its logarithm is")));
}

}  // namespace log_histogram_test
}  // namespace gainlens::interventions
