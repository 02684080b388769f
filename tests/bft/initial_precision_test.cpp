#include "bft/initial_precision.h"

#include "bft/filter_weights.h"
#include "support/refusal.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gainlens::bft {
namespace initial_precision_test {

using gainlens::testing::refusal_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PopularityRanks, AreThePlacesOfTheCounts) {
  EXPECT_THAT(popularity_ranks(std::vector<std::int64_t>{5, 1, 9}), ElementsAre(0.5F, 0.0F, 1.0F));
  // Equal counts share the mean of their places: 0 and 1 of 0 to 4, then 2, 3 and 4.
  EXPECT_THAT(popularity_ranks(std::vector<std::int64_t>{7, 2, 7, 2, 7}),
              ElementsAre(0.75F, 0.125F, 0.75F, 0.125F, 0.75F));
  EXPECT_THAT(popularity_ranks(std::vector<std::int64_t>{3}), ElementsAre(0.5F));
  EXPECT_TRUE(popularity_ranks(std::vector<std::int64_t>{}).empty());
}

TEST(InitialPrecision, OfContentBeginsWithTheRanksAndLnTwo) {
  const PrecisionNetwork network{at::randn({16, 3}), at::zeros({16}), at::zeros({1, 16}), at::zeros({1})};
  const InitialPrecisionWeights weights{
      .network = network, .range = at::tensor({8.0F}), .base = at::tensor({0.5F, 0.0F})};
  const PriorPrecision prior = prior_precision({}, weights, at::tensor({1, 0}), at::randn({2, 3}));
  const at::Tensor found = initial_precision({}, prior, weights.range);
  EXPECT_NEAR(found[0].item<double>(), std::log(2.0), 1e-6);
  EXPECT_NEAR(found[1].item<double>(), 4 + std::log(2.0), 1e-6);
  EXPECT_NEAR(table_precision(at::zeros({1})).item<double>(), 1 + std::log(2.0), 1e-6);
}

TEST(InitialPrecision, GivesTheMedianItemTheGainThatIsAskedFor) {
  const double observed = 64, gain = 0.9, median_base = 0.4;
  const double range = initial_range(observed, gain, median_base, std::log(2.0), 1e-3);
  const double tau = range * median_base + std::log(2.0);
  EXPECT_NEAR(observed / (tau + observed), gain, 1e-12);
  EXPECT_EQ(initial_range(0.1, 0.9, 0.5, std::log(2.0), 1e-3), 1e-3);  // ln 2 alone is more than it needs
  EXPECT_NEAR(observed / (initial_range(observed, gain, median_base, 0, 1e-3) * median_base + observed), gain, 1e-12);
}

TEST(InitialPrecision, EmRefusesWhatIsNoData) {
  const at::Tensor tau = at::ones({2}), item = at::zeros({3}, at::kLong), x = at::ones({3, 2});
  EXPECT_THAT(refusal_of([&] { em_step(tau, item, x, at::ones({2, 2})); }), HasSubstr("[occurrence, dimension]"));
  EXPECT_THAT(refusal_of([&] { em_step(tau, item, x * NAN, x); }), HasSubstr("not finite"));
  EXPECT_THAT(refusal_of([&] { em_step(tau * 0, item, x, x); }), HasSubstr("not above 0 and finite"));
}

}  // namespace initial_precision_test
}  // namespace gainlens::bft
