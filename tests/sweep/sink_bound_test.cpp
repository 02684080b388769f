#include "sweep/sink_bound.h"

#include "core/error.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace gainlens::sweep {
namespace sink_bound_test {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(SinkBound, ByHand) {
  // delta 0.2, epsilon 0.1, ||vbar|| = 1, mu = 2: c = 1/2, mu c = 1, bound 1 - 0.3.
  const SinkNorms norms{.update = 0.2, .first = 0.1, .others = 1, .least = 2};
  EXPECT_DOUBLE_EQ(sink_alignment(norms), 0.5);
  EXPECT_DOUBLE_EQ(sink_bound(norms), 0.7);
}

TEST(SinkBound, AlignmentIsAtMostOne) {
  const SinkNorms norms{.update = 0.2, .first = 0.1, .others = 4, .least = 2};
  EXPECT_DOUBLE_EQ(sink_alignment(norms), 1);
  EXPECT_DOUBLE_EQ(sink_bound(norms), 0.85);  // mu c = mu = 2, though ||vbar|| = 4
}

TEST(SinkBound, NothingFollowsWithoutASize) {
  EXPECT_TRUE(std::isnan(sink_alignment({.update = 1, .first = 1, .others = 1, .least = 0})));
  EXPECT_EQ(sink_bound({.update = 1, .first = 1, .others = 1, .least = 0}), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(sink_bound({.update = 1, .first = 1, .others = 0, .least = 1}), -std::numeric_limits<double>::infinity());
}

TEST(SinkBound, SummaryByHand) {
  // mu = 2, epsilon = 0.1. Bounds: 1 - 0.3 / 1 = 0.7; 1 - 1.6 / 1 = -0.6; the last query sees key 0 alone.
  const std::array weight{0.8, 0.4, 1.0}, estimate{0.2, 1.5, 0.1}, gained{0.0, 1.0, 0.1}, others{1.0, 1.0, nan};
  const SinkBoundSummary found = summarise_sink_bound({weight, estimate, gained, others}, 0.1, 2);
  EXPECT_DOUBLE_EQ(found.bound, 0.35);       // (0.7 + 0) / 2
  EXPECT_DOUBLE_EQ(found.gain_bound, 0.45);  // (0.9 + 0) / 2
  EXPECT_DOUBLE_EQ(found.alignment, 0.5);
  EXPECT_DOUBLE_EQ(found.vacuous, 0.5);
  EXPECT_DOUBLE_EQ(found.slack, 0.8 - 0.7);
  EXPECT_DOUBLE_EQ(found.slack_min, 0.8 - 0.7);  // the other query has 0.4 + 0.6
  EXPECT_DOUBLE_EQ(found.gain_violated, 0.5);    // 0.8 < 0.9
}

TEST(SinkBound, ALemmaThatIsBrokenShows) {
  // No attention has these norms: with weight 0.1 on a key of norm 0 and others that average to norm 1, ||e|| must be
  // 0.9, but here it is 0.
  const std::array weight{0.1}, zero{0.0}, others{1.0};
  const SinkBoundSummary found = summarise_sink_bound({weight, zero, zero, others}, 0, 1);
  EXPECT_DOUBLE_EQ(found.slack_min, 0.1 - 1);
  EXPECT_DOUBLE_EQ(found.gain_violated, 1);
}

TEST(SinkBound, NoQueryLeavesNaN) {
  const std::array none{nan};
  const SinkBoundSummary found = summarise_sink_bound({none, none, none, none}, 0.1, 1);
  for (const double value : {found.bound, found.gain_bound, found.alignment, found.vacuous, found.slack,
                             found.slack_min, found.gain_violated}) {
    EXPECT_TRUE(std::isnan(value));
  }
}

// The lemma: random attention is never below its bound, but with a gain below 1 it can be.
TEST(SinkBound, HoldsForRandomAttention) {
  std::mt19937_64 generator(1);
  std::normal_distribution<double> normal;
  std::exponential_distribution<double> positive;
  constexpr std::size_t keys = 6, dims = 3;
  std::vector<double> weight, estimate, gained, others;
  int binding = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const double first_scale = std::pow(10.0, -3.0 * (trial % 2));
    std::array<std::array<double, dims>, keys> values;
    std::array<double, keys> p;
    double total = 0, least = std::numeric_limits<double>::infinity(), first = 0;
    for (std::size_t key = 0; key < keys; ++key) {
      p[key] = positive(generator) * (key == 0 ? 20 : 1);
      total += p[key];
      double squares = 0;
      for (double& element : values[key]) {
        element = (1 + normal(generator)) * (key == 0 ? first_scale : 1);
        squares += element * element;
      }
      if (key == 0) first = std::sqrt(squares);
      if (key > 0) least = std::min(least, std::sqrt(squares));
    }
    double squares = 0, squares_others = 0;
    for (std::size_t i = 0; i < dims; ++i) {
      double sum = 0;
      for (std::size_t key = 1; key < keys; ++key) sum += p[key] / total * values[key][i];
      squares_others += std::pow(sum / (1 - p[0] / total), 2);
      squares += std::pow(sum + p[0] / total * values[0][i], 2);
    }
    const std::array w{p[0] / total}, e{std::sqrt(squares)}, k{0.2 * std::sqrt(squares)}, o{std::sqrt(squares_others)};
    const SinkBoundSummary found = summarise_sink_bound({w, e, k, o}, first, least);
    EXPECT_GE(found.slack_min, -1e-12);
    binding += found.bound > 0;
  }
  EXPECT_GT(binding, 100);  // the bound is above 0 often enough to be tested
}

}  // namespace sink_bound_test
}  // namespace gainlens::sweep
