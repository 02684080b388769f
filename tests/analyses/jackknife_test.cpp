#include "analyses/jackknife.h"

#include "core/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gainlens::analyses {
namespace jackknife_test {

using ::testing::HasSubstr;

/// A nearly normal number with mean 0 and variance 1: the sum of twelve uniform numbers minus 6.
double near_normal(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.uniform();
  return sum;
}

/// Layers of four heads. In every head, x and y share the fraction `share` of their variance.
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

/// `lengths` lengths, whose chunks pair by number. The values of each chunk are the values of the heads plus scatter.
ChunkedPairs noisy_chunks(std::size_t lengths, std::size_t chunks, double scatter) {
  TextStretches text{{}, {}, chunks, 64};
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) text.numbers.push_back(chunk);
  text.chunk_stretch.assign(lengths, text.numbers);
  ChunkedPairs pairs{noisy_pairs(6, 0.8), text, {}, {}};
  Random random(2);
  for (std::size_t length = 0; length < lengths; ++length) {
    auto &x = pairs.x.emplace_back(), &y = pairs.y.emplace_back();
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      x.push_back(pairs.heads.x);
      y.push_back(pairs.heads.y);
      for (double& value : x.back()) value += scatter * (random.uniform() - 0.5);
    }
  }
  return pairs;
}

double width(const Maybe<Interval>& interval) {
  return interval->high - interval->low;
}

TEST(LeaveOutLayers, TheRangeIsOfTheCorrelationsWithoutALayer) {
  ClusteredPairs pairs = noisy_pairs(4, 0.6);
  for (std::size_t i = 0; i < 4; ++i) pairs.x[i] = pairs.y[i] = 10 * static_cast<double>(i);  // layer 0 makes r large
  const auto found = leave_out_layers(pairs);
  ASSERT_TRUE(found) << found.reason();
  EXPECT_EQ(found->layers, 4u);
  const auto without = [&](std::size_t layer) {
    std::vector<double> x, y;
    for (std::size_t i = 0; i < pairs.x.size(); ++i) {
      if (pairs.layer[i] == layer) continue;
      x.push_back(pairs.x[i]);
      y.push_back(pairs.y[i]);
    }
    return *correlation(x, y).pearson;
  };
  EXPECT_DOUBLE_EQ(found->pearson->low, without(0));
  EXPECT_DOUBLE_EQ(found->pearson->high, std::max({without(1), without(2), without(3)}));
  EXPECT_LT(found->pearson->low, 0.9);
  EXPECT_GT(found->pearson->high, 0.95);
}

TEST(LeaveOutLayers, ARangeHasNoLevel) {
  const OrderedJson json = to_json(*leave_out_layers(noisy_pairs(12, 0.5)));
  for (const char* key : {"interval_level", "pearson_interval", "pearson_within_layers_interval"}) {
    EXPECT_TRUE(json.at(key).is_null()) << key;
    EXPECT_THAT(json.at(std::string(key) + "_reason"),
                HasSubstr("the usual interval over layers holds less than it states"));
  }
  EXPECT_EQ(json.at("pearson_range").size(), 2u);
  EXPECT_LT(json.at("pearson_within_layers_range")[0], json.at("pearson_within_layers_range")[1]);
}

TEST(LeaveOutLayers, TwoLayersAreRefused) {
  EXPECT_THAT(leave_out_layers(noisy_pairs(2, 0.5)).reason(), HasSubstr("at least 3 layers; the run has 2"));
  EXPECT_THAT(leave_out_layers({}).reason(), HasSubstr("no head"));
}

TEST(LeaveOutText, EqualChunksHaveNoSpread) {
  const ChunkedPairs pairs = noisy_chunks(2, 5, 0);
  const auto found = leave_out_text(pairs);
  const double r = *correlation(pairs.heads.x, pairs.heads.y).pearson;
  EXPECT_NEAR(found->pearson->low, r, 1e-12);
  EXPECT_NEAR(found->pearson->high, r, 1e-12);
  EXPECT_EQ(found->units, 5u);
  EXPECT_EQ(found->degrees_of_freedom, 4);
}

TEST(LeaveOutText, LengthsThatShareTextAreLeftOutTogether) {
  // The chunks of the second length have the opposite noise. Leaving out a stretch at both lengths cancels the noise.
  // If the chunks of the second length were other text, the noise would add up.
  ChunkedPairs pairs = noisy_chunks(1, 6, 0.5);
  pairs.x.push_back(pairs.x.front());
  pairs.y.push_back(pairs.y.front());
  for (auto& chunk : pairs.x.back()) {
    for (std::size_t point = 0; point < chunk.size(); ++point) chunk[point] = 2 * pairs.heads.x[point] - chunk[point];
  }
  pairs.text.chunk_stretch.push_back(pairs.text.chunk_stretch.front());
  EXPECT_NEAR(width(leave_out_text(pairs)->pearson), 0, 1e-9);
  pairs.text.chunk_stretch.back() = {6, 7, 8, 9, 10, 11};
  for (std::size_t stretch = 6; stretch < 12; ++stretch) pairs.text.numbers.push_back(stretch);
  EXPECT_GT(width(leave_out_text(pairs)->pearson), 0.005);
}

TEST(LeaveOutText, IsStudentsIntervalOfFishersZ) {
  // Only one head moves. z is nearly linear in its mean, so that three chunks give t(0.975, 2) = 4.302653 standard
  // errors of z on either side.
  ChunkedPairs pairs = noisy_chunks(1, 3, 0);
  const double steps[] = {-0.01, 0.0, 0.01};
  for (std::size_t chunk = 0; chunk < 3; ++chunk) pairs.x[0][chunk][0] += steps[chunk];
  const auto z_at = [&](double step) {
    std::vector<double> x = pairs.heads.x;
    x[0] += step;
    return std::atanh(*correlation(x, pairs.heads.y).pearson);
  };
  const double slope = (z_at(1e-4) - z_at(-1e-4)) / 2e-4, error = std::abs(slope) * 0.01 / std::sqrt(3.0);
  const auto found = leave_out_text(pairs);
  EXPECT_NEAR((std::atanh(found->pearson->high) - std::atanh(found->pearson->low)) / (2 * 4.302653 * error), 1, 1e-3);
}

TEST(LeaveOutText, TwoStretchesAreRefused) {
  EXPECT_EQ(leave_out_text(noisy_chunks(1, 2, 0.1)).reason(),
            "no interval: it takes at least 3 separate stretches of text, and the chunks of 64 tokens lie in 2; sweep "
            "with more --samples, or with --nested or --spread");
}

TEST(LeaveOutText, NoisyChunksHaveNoLevel) {
  const auto found = leave_out_text(noisy_chunks(1, 4, 30));
  ASSERT_TRUE(found) << found.reason();
  EXPECT_THAT(found->pearson.reason(), HasSubstr("of the variance of the heads; intervals are given up to 25%"));
  EXPECT_THAT(found->pearson_within.reason(), HasSubstr("of the heads within layers"));
}

TEST(LeaveOutText, HeadWithoutAValueInWhatRemainsHasAReason) {
  ChunkedPairs pairs = noisy_chunks(1, 3, 0.1);
  for (std::size_t chunk = 0; chunk < 2; ++chunk) pairs.x[0][chunk][0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(leave_out_text(pairs)->pearson.reason(), HasSubstr("no value in the chunks that remain"));
}

TEST(LeaveOutText, HeadsOnALineHaveAReason) {
  ChunkedPairs pairs = noisy_chunks(1, 3, 0);
  pairs.heads.y = pairs.heads.x;
  pairs.y = pairs.x;
  EXPECT_THAT(leave_out_text(pairs)->pearson.reason(), HasSubstr("Fisher's z is infinite"));
  EXPECT_TRUE(to_json(*leave_out_text(pairs))["pearson_interval"].is_null());
}

}  // namespace jackknife_test
}  // namespace gainlens::analyses
