#include "analyses/bootstrap.h"

#include "core/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gainlens::analyses {
namespace {

using ::testing::HasSubstr;

/// Nearly normal, of mean 0 and variance 1: the sum of twelve uniform numbers less 6.
double near_normal(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.uniform();
  return sum;
}

/// x and y share `share` of their variance in every head; layers of four heads.
ClusteredPairs noisy_pairs(std::size_t layers, double share, std::uint64_t seed = 1) {
  Random random(seed);
  ClusteredPairs pairs;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    for (std::size_t head = 0; head < 4; ++head) {
      const double common = near_normal(random);
      pairs.x.push_back(share * common + (1 - share) * near_normal(random));
      pairs.y.push_back(share * common + (1 - share) * near_normal(random));
      pairs.layer.push_back(layer);
      pairs.head.push_back(head);
    }
  }
  return pairs;
}

/// One length; the values of every chunk are those of the heads plus scatter.
ChunkedPairs noisy_chunks(std::size_t lengths, std::size_t chunks, double scatter, bool nested = true) {
  ChunkedPairs pairs{noisy_pairs(3, 0.8), nested, {}, {}};
  Random random(2);
  for (std::size_t length = 0; length < lengths; ++length) {
    auto &x = pairs.x.emplace_back(), &y = pairs.y.emplace_back();
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      x.push_back(pairs.heads.x);
      y.push_back(pairs.heads.y);
      for (double& value : x.back()) value += scatter * random.uniform();
    }
  }
  return pairs;
}

TEST(LayerBootstrap, HoldsThePooledCorrelation) {
  const ClusteredPairs pairs = noisy_pairs(100, 0.6);
  const auto bootstrap = bootstrap_layers(pairs, std::vector<std::string>(100, "global"), {});
  ASSERT_TRUE(bootstrap) << bootstrap.reason();
  EXPECT_EQ(bootstrap->units, 100);
  EXPECT_EQ(bootstrap->resamples, 2000);
  const double r = *correlation(pairs.x, pairs.y).pearson;
  EXPECT_LT(bootstrap->pearson->low, r);
  EXPECT_GT(bootstrap->pearson->high, r);
  // Fisher's z gives 400 independent heads an interval of r -+ 1.96 (1 - r^2) / sqrt(397)
  const double expected = 2 * 1.96 * (1 - r * r) / std::sqrt(397);
  EXPECT_NEAR((bootstrap->pearson->high - bootstrap->pearson->low) / expected, 1, 0.1);  // a 90% interval would have 0.84
}

TEST(LayerBootstrap, NineLayersOfAKindAreRefused) {
  EXPECT_THAT(bootstrap_layers(noisy_pairs(9, 0.5), std::vector<std::string>(9, "global"), {}).reason(), HasSubstr("global attention: 9"));
  std::vector<std::string> kinds(20, "global");
  for (std::size_t layer = 0; layer < 5; ++layer) kinds[layer] = "window:8";
  EXPECT_THAT(bootstrap_layers(noisy_pairs(20, 0.5), kinds, {}).reason(), HasSubstr("window:8 attention: 5"));
}

TEST(LayerBootstrap, KindsAreDrawnAmongThemselves) {
  // Layers of one kind are all alike: drawn among themselves, every resample of 10 + 10 layers is the data again
  ClusteredPairs pairs = noisy_pairs(20, 0.5);
  std::vector<std::string> kinds(20, "global");
  for (std::size_t i = 0; i < pairs.x.size(); ++i) {
    const bool second = pairs.layer[i] >= 10;
    if (second) kinds[pairs.layer[i]] = "window:8";
    pairs.x[i] = static_cast<double>(pairs.head[i]) + (second ? 5 : 0);
    pairs.y[i] = static_cast<double>((3 * pairs.head[i] + 1) % 4) - (second ? 2 : 0);
  }
  const double r = *correlation(pairs.x, pairs.y).pearson;
  const auto bootstrap = bootstrap_layers(pairs, kinds, {.bootstraps = 50});
  EXPECT_NEAR(bootstrap->pearson->low, r, 1e-12);
  EXPECT_NEAR(bootstrap->pearson->high, r, 1e-12);
}

TEST(ChunkBootstrap, EqualChunksHaveNoSpread) {
  const ChunkedPairs pairs = noisy_chunks(2, 5, 0);
  const auto bootstrap = bootstrap_chunks(pairs, {});
  const double r = *correlation(pairs.heads.x, pairs.heads.y).pearson;
  EXPECT_NEAR(bootstrap->pearson->low, r, 1e-12);
  EXPECT_NEAR(bootstrap->pearson->high, r, 1e-12);
  EXPECT_EQ(bootstrap->units, 5);
}

TEST(ChunkBootstrap, NestedLengthsShareTheirDraws) {
  // With the chunks of the second length noisy in the opposite sense, one draw for both cancels the noise; draws apart do not
  ChunkedPairs pairs = noisy_chunks(1, 6, 0.5);
  pairs.x.push_back(pairs.x.front());
  pairs.y.push_back(pairs.y.front());
  for (auto& chunk : pairs.x.back()) {
    for (std::size_t point = 0; point < chunk.size(); ++point) chunk[point] = 2 * pairs.heads.x[point] - chunk[point];
  }
  const auto nested = bootstrap_chunks(pairs, {});
  EXPECT_NEAR(nested->pearson->low, nested->pearson->high, 1e-9);
  pairs.nested = false;
  const auto apart = bootstrap_chunks(pairs, {});
  EXPECT_GT(apart->pearson->high - apart->pearson->low, 0.01);
}

TEST(ChunkBootstrap, TwoChunksAreRefused) {
  EXPECT_THAT(bootstrap_chunks(noisy_chunks(1, 2, 0.1), {}).reason(), HasSubstr("2 chunks are complete at every length"));
  EXPECT_THAT(bootstrap_chunks(noisy_chunks(1, 2, 0.1, false), {}).reason(), HasSubstr("2 complete chunks at one of the lengths"));
}

TEST(ChunkBootstrap, HeadWithoutAValueInTheDrawHasAReason) {
  ChunkedPairs pairs = noisy_chunks(1, 3, 0.1);
  for (std::size_t chunk = 0; chunk < 2; ++chunk) pairs.x[0][chunk][0] = std::numeric_limits<double>::quiet_NaN();
  const auto bootstrap = bootstrap_chunks(pairs, {});
  EXPECT_THAT(bootstrap->pearson.reason(), HasSubstr("no value in the chunks drawn"));
}

TEST(ChunkBootstrap, SeedFixesTheInterval) {
  const ChunkedPairs pairs = noisy_chunks(1, 8, 0.5);
  EXPECT_EQ(bootstrap_chunks(pairs, {.seed = 1})->pearson->low, bootstrap_chunks(pairs, {.seed = 1})->pearson->low);
  EXPECT_NE(bootstrap_chunks(pairs, {.seed = 1})->pearson->low, bootstrap_chunks(pairs, {.seed = 2})->pearson->low);
  EXPECT_EQ(to_json(*bootstrap_chunks(pairs, {.seed = 9}))["seed"], 9);
}

}  // namespace
}  // namespace gainlens::analyses
