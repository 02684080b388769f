#include "data/latent_walk.h"

#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

namespace gainlens::data {
namespace latent_walk_test {

using ::testing::HasSubstr;
using testing::refusal_of;
using ::testing::StartsWith;

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

double hits(const WalkRanking& ranking) {
  return mean_of(parse_ranking_metric("hr@10"), ranking.ranks);
}

TEST(LatentWalk, HistoriesHaveTheShapeThatIsAskedFor) {
  const WalkOptions options{.users = 300, .items = 90, .shortest = 4, .longest = 9, .noise = {0.2, 1, 2}};
  const LatentWalk walk = latent_walk(options);
  ASSERT_EQ(walk.sequences.size(), 300u);
  std::set<std::size_t> lengths;
  for (const auto& sequence : walk.sequences) {
    lengths.insert(sequence.size());
    EXPECT_EQ(std::set<ItemId>(sequence.begin(), sequence.end()).size(), sequence.size());  // no item twice
    EXPECT_TRUE(std::ranges::all_of(sequence, [](ItemId item) { return item >= 1 && item <= 90; }));
  }
  EXPECT_EQ(lengths, (std::set<std::size_t>{4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(walk.noise[0], 0.2);
  EXPECT_EQ(walk.noise[4], 1);
  EXPECT_EQ(walk.noise[89], 2);
  EXPECT_THAT(item_table(walk), StartsWith("item,noise,position_1,position_2\n1,0.2,"));
  EXPECT_EQ(latent_walk(options).sequences, walk.sequences);
  WalkOptions other = options;
  other.seed = 1;
  EXPECT_NE(latent_walk(other).sequences, walk.sequences);
  other = options;
  other.users = 10;  // more users move neither the items nor the first users
  const LatentWalk few = latent_walk(other);
  EXPECT_EQ(few.position, walk.position);
  EXPECT_EQ(few.sequences, Sequences(walk.sequences.begin(), walk.sequences.begin() + 10));
}

/// The mean over users of (z_t - z_s)^2 of one dimension, where both clicks are of this level, `lag` clicks apart.
double square_difference(const LatentWalk& walk, double noise, std::size_t lag) {
  double sum = 0, count = 0;
  for (const auto& sequence : walk.sequences) {
    for (std::size_t i = 0; i + lag < sequence.size(); ++i) {
      const auto a = static_cast<std::size_t>(sequence[i] - 1), b = static_cast<std::size_t>(sequence[i + lag] - 1);
      if (walk.noise[a] != noise || walk.noise[b] != noise) continue;
      sum += std::pow(walk.position[a] - walk.position[b], 2);
      ++count;
    }
  }
  return sum / count;
}

TEST(LatentWalk, ClicksMeasureTheStateWithTheNoiseOfTheirItem) {
  // z = x + r e, and x_t - x_s has the variance 2 (1 - a^lag). Many items, so that they stand densely.
  const WalkOptions options{
      .users = 1500, .items = 6000, .shortest = 12, .longest = 12, .dimensions = 1, .noise = {0.3, 1}, .drift = 0.3};
  const LatentWalk walk = latent_walk(options);
  const double kept = std::sqrt(1 - 0.09);
  for (const double noise : options.noise) {
    for (const std::size_t lag : {1u, 5u}) {
      const double expected = 2 * (1 - std::pow(kept, static_cast<double>(lag))) + 2 * noise * noise;
      EXPECT_NEAR(square_difference(walk, noise, lag) / expected, 1, 0.08) << noise << " " << lag;
    }
  }
}

TEST(LatentWalk, TheExactFilterWinsWhereItemsDifferAndTiesWhereTheyDoNot) {
  const WalkOptions different{.users = 800, .items = 400, .noise = {0.3, 2}}, same{.users = 800, .noise = {0.6}};
  const std::vector<WalkRanking> found = rank_walk(latent_walk(different), different);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(name_of(found[0].filter), "exact");
  EXPECT_GT(hits(found[0]), 1.25 * hits(found[1]));
  EXPECT_GT(hits(found[0]), 1.25 * hits(found[2]));
  EXPECT_GT(hits(found[2]), 3 * 10.0 / 400);  // above chance
  const std::vector<WalkRanking> equal = rank_walk(latent_walk(same), same);
  EXPECT_EQ(equal[0].ranks, equal[1].ranks);
}

/// The posterior mean of the state and the prediction of the last item, by sums over a grid of states: the filter of
/// any likelihood, in one dimension, without a formula of Kalman's.
class GridFilter {
 public:
  GridFilter(const LatentWalk& walk, double drift) : walk_(walk), drift_(drift), weight_(states) {
    for (std::size_t i = 0; i < states; ++i) weight_[i] = std::exp(-0.5 * state(i) * state(i));
  }
  void click(std::size_t item) {
    for (std::size_t i = 0; i < states; ++i) weight_[i] *= likelihood(item, i);
    move();
  }
  /// Up to a factor that all items share.
  double probability(std::size_t item) const {
    double sum = 0;
    for (std::size_t i = 0; i < states; ++i) sum += weight_[i] * likelihood(item, i);
    const double own = 1 + walk_.noise[item] * walk_.noise[item], z = walk_.position[item];
    return sum / (std::exp(-0.5 * z * z / own) / std::sqrt(own));
  }

 private:
  static constexpr std::size_t states = 161;
  static double state(std::size_t i) { return -4 + 0.05 * static_cast<double>(i); }
  double likelihood(std::size_t item, std::size_t i) const {
    const double noise = walk_.noise[item], away = (walk_.position[item] - state(i)) / noise;
    return std::exp(-0.5 * away * away) / noise;
  }
  void move() {
    std::vector<double> moved(states, 0.0);
    const double kept = std::sqrt(1 - drift_ * drift_);
    double sum = 0;
    for (std::size_t to = 0; to < states; ++to) {
      for (std::size_t from = 0; from < states; ++from) {
        const double away = (state(to) - kept * state(from)) / drift_;
        moved[to] += weight_[from] * std::exp(-0.5 * away * away);
      }
      sum += moved[to];
    }
    for (std::size_t i = 0; i < states; ++i) weight_[i] = moved[i] / sum;
  }

  const LatentWalk& walk_;
  double drift_;
  std::vector<double> weight_;
};

TEST(LatentWalk, TheExactFilterRanksAsSumsOverAGridOfStates) {
  const WalkOptions options{
      .users = 40, .items = 60, .shortest = 6, .longest = 10, .dimensions = 1, .noise = {0.4, 1.5}, .drift = 0.4};
  const LatentWalk walk = latent_walk(options);
  std::set<std::size_t> present;
  for (const auto& sequence : walk.sequences) {
    for (const ItemId item : sequence) present.insert(static_cast<std::size_t>(item - 1));
  }
  const std::vector<double> ranks = rank_walk(walk, options)[0].ranks;
  for (std::size_t user = 0; user < walk.sequences.size(); ++user) {
    const auto& sequence = walk.sequences[user];
    GridFilter filter(walk, options.drift);
    std::set<std::size_t> candidates = present;
    for (std::size_t i = 0; i + 1 < sequence.size(); ++i) {
      filter.click(static_cast<std::size_t>(sequence[i] - 1));
      candidates.erase(static_cast<std::size_t>(sequence[i] - 1));
    }
    const auto target = static_cast<std::size_t>(sequence.back() - 1);
    double rank = 1;
    for (const std::size_t item : candidates) {
      if (item != target && filter.probability(item) > filter.probability(target)) ++rank;
    }
    EXPECT_EQ(ranks[user], rank) << user;
  }
}

TEST(LatentWalk, RequestsThatMakeNoSenseAreRefused) {
  const auto refusal = [](const auto& change) {
    WalkOptions options;
    change(options);
    return refusal_of([&] { latent_walk(options); });
  };
  for (const double noise : {0.0, -1.0, 101.0, no_number})
    EXPECT_THAT(refusal([&](WalkOptions& o) { o.noise = {0.3, noise}; }), HasSubstr("must be 0.001 to 100")) << noise;
  EXPECT_THAT(refusal([](WalkOptions& o) { o.noise = {}; }), HasSubstr("0 levels; must be 1 to 100"));
  for (const double drift : {-0.1, 1.0, no_number})
    EXPECT_THAT(refusal([&](WalkOptions& o) { o.drift = drift; }), HasSubstr("must be at least 0, and below 1"));
  EXPECT_THAT(refusal([](WalkOptions& o) { o.shortest = 2; }), StartsWith("--shortest: 2; must be 3 to"));
  EXPECT_THAT(refusal([](WalkOptions& o) { o.longest = 4; }), StartsWith("--longest: 4; must be 5 to"));
  EXPECT_THAT(refusal([](WalkOptions& o) { o.users = 0; }), StartsWith("--users: 0; must be 1 to"));
  EXPECT_THAT(refusal([](WalkOptions& o) { o.dimensions = 65; }), StartsWith("--dimensions: 65; must be 1 to 64"));
  EXPECT_THAT(refusal([](WalkOptions& o) { o.items = 39; }), StartsWith("--items: 39; must be 40 to"));
  EXPECT_EQ(refusal([](WalkOptions& o) { o.users = 1; }), "accepted");
}

}  // namespace latent_walk_test
}  // namespace gainlens::data
