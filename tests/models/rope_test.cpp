#include "models/decoder/rope.h"

#include "core/error.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::models {
namespace rope_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// The tolerance is a few float32 roundings, because the reference computes in float32.
void expect_frequencies(const RopeConfig& config, const std::vector<double>& expected, double attention_factor) {
  const RopeFrequencies found = rope_frequencies(config, 2 * static_cast<std::int64_t>(expected.size()), 1);
  ASSERT_EQ(found.inverse.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found.inverse[i], expected[i], 5e-7 * expected[i]) << "pair " << i;
  EXPECT_NEAR(found.attention_factor, attention_factor, 1e-8);
}

TEST(Rope, PlainFrequenciesByHand) {
  const RopeFrequencies found = rope_frequencies({.base = 10000}, 4, 1);
  ASSERT_EQ(found.inverse.size(), 2u);
  EXPECT_DOUBLE_EQ(found.inverse[0], 1.0);
  EXPECT_DOUBLE_EQ(found.inverse[1], 0.01);  // 10000^(-2/4)
  EXPECT_EQ(found.attention_factor, 1.0);
}

// tests/golden/make_rope_golden.py printed the numbers of the next five tests.
TEST(Rope, LinearScalingAsTheReference) {
  expect_frequencies(
      {.base = 10000, .scaling = RopeScaling::linear, .factor = 4},
      {0.25, 0.079056941, 0.0250000004, 0.00790569466, 0.00249999994, 0.000790569466, 0.000250000012, 7.90569466e-05},
      1);
}

TEST(Rope, Llama3ScalingAsTheReference) {
  expect_frequencies(
      {.base = 500000,
       .scaling = RopeScaling::llama3,
       .factor = 8,
       .low_frequency_factor = 1,
       .high_frequency_factor = 4,
       .original_max_positions = 8192},
      {1.0, 0.193922758, 0.0376060307, 0.00729266508, 0.000524846022, 3.42810235e-05, 6.64786967e-06, 1.28917316e-06},
      1);
}

TEST(Rope, YarnScalingAsTheReference) {
  expect_frequencies(
      {.base = 10000, .scaling = RopeScaling::yarn, .factor = 4, .original_max_positions = 2048},
      {1.0, 0.316227764, 0.100000001, 0.025693506, 0.00624999963, 0.00138349656, 0.000250000012, 7.90569466e-05},
      1.138629436111989);
}

TEST(Rope, YarnWithEveryOptionAsTheReference) {
  expect_frequencies(
      {.base = 1000000,
       .scaling = RopeScaling::yarn,
       .factor = 4,
       .original_max_positions = 2048,
       .beta_fast = 24,
       .beta_slow = 2,
       .attention_factor = 1.25,
       .truncate = false},
      {1.0, 0.177827939, 0.0235559028, 0.00140585331, 0.000250000012, 4.44569851e-05, 7.90569356e-06, 1.40585337e-06},
      1.25);
}

TEST(Rope, ProportionalAsTheReference) {
  expect_frequencies({.base = 1000000, .rotated = 0.7, .scaling = RopeScaling::proportional, .factor = 2},
                     {0.5, 0.0889139697, 0.0158113893, 0.00281170662, 0.000500000024, 0, 0, 0}, 1);
}

TEST(Rope, TablesHoldCosinesOfPositionTimesFrequency) {
  const RopeTables tables =
      rope_tables({.inverse = {1.0, 0.01}, .attention_factor = 2}, 3, at::TensorOptions(at::kDouble));
  ASSERT_EQ(tables.cosine.sizes(), at::IntArrayRef({3, 2}));
  EXPECT_EQ(tables.cosine[0][0].item<double>(), 2.0);
  EXPECT_EQ(tables.sine[0][1].item<double>(), 0.0);
  EXPECT_DOUBLE_EQ(tables.cosine[2][0].item<double>(), 2 * std::cos(2.0));
  EXPECT_DOUBLE_EQ(tables.sine[2][1].item<double>(), 2 * std::sin(0.02));
}

TEST(Rope, LongPositionsDoNotLoseTheAngle) {
  const double frequency = rope_frequencies({.base = 10000}, 128, 1).inverse[1];  // float32 cannot hold it exactly
  const RopeTables tables = rope_tables({.inverse = {frequency}}, 100001, at::TensorOptions(at::kFloat));
  EXPECT_FLOAT_EQ(tables.cosine[100000][0].item<float>(), static_cast<float>(std::cos(100000 * frequency)));
}

TEST(Rope, RotationPairsTheHalvesOfAHead) {
  // One quarter turn at position 1 in the first pair, none in the second: dimensions (0, 2) and (1, 3) are the pairs.
  const RopeTables tables{at::tensor({1.0, 1.0, 0.0, 1.0}).view({2, 2}), at::tensor({0.0, 0.0, 1.0, 0.0}).view({2, 2})};
  const at::Tensor heads = at::tensor({1.0, 2.0, 3.0, 4.0}).view({1, 1, 1, 4}).expand({1, 2, 1, 4});
  const at::Tensor rotated = rotate(heads, tables);
  EXPECT_TRUE(at::equal(rotated[0][0][0], at::tensor({1.0, 2.0, 3.0, 4.0})));
  EXPECT_TRUE(at::equal(rotated[0][1][0], at::tensor({-3.0, 2.0, 1.0, 4.0})));
}

TEST(Rope, RotationLeavesScoresToTheDistanceAlone) {
  at::manual_seed(1);
  const RopeTables tables = rope_tables(rope_frequencies({.base = 100}, 8, 1), 12, at::TensorOptions(at::kDouble));
  const at::Tensor query = at::randn({1, 1, 1, 8}, at::kDouble).expand({1, 12, 1, 8});
  const at::Tensor key = at::randn({1, 1, 1, 8}, at::kDouble).expand({1, 12, 1, 8});
  const at::Tensor scores = rotate(query, tables).view({12, 8}).matmul(rotate(key, tables).view({12, 8}).t());
  EXPECT_NEAR(scores[7][4].item<double>(), scores[11][8].item<double>(), 1e-12);
  EXPECT_GT(std::abs(scores[7][4].item<double>() - scores[7][5].item<double>()), 1e-3);
}

TEST(Rope, UnusableSettingsAreNamed) {
  EXPECT_THAT([] { rope_frequencies({}, 7, 1); }, ThrowsMessage<InvalidArgument>(HasSubstr("7 of 7 dimensions")));
  EXPECT_THAT([] { rope_frequencies({.base = 1}, 8, 1); }, ThrowsMessage<InvalidArgument>(HasSubstr("base 1")));
  EXPECT_THAT([] { rope_frequencies({.scaling = RopeScaling::linear, .factor = 0}, 8, 1); },
              ThrowsMessage<InvalidArgument>(HasSubstr("scaling factor 0")));
  EXPECT_THAT([] { rope_frequencies({.scaling = RopeScaling::yarn, .factor = 2}, 8, 1); },
              ThrowsMessage<InvalidArgument>(HasSubstr("original_max_position_embeddings 0")));
  EXPECT_THAT(
      [] {
        rope_frequencies(
            {.scaling = RopeScaling::llama3, .factor = 2, .low_frequency_factor = 4, .original_max_positions = 64}, 8,
            1);
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("low_freq_factor 4 and high_freq_factor 4")));
  EXPECT_THAT(
      [] {
        rope_frequencies(
            {.scaling = RopeScaling::yarn, .factor = 2, .original_max_positions = 64, .beta_fast = 1, .beta_slow = 2},
            8, 1);
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("beta_fast 1 and beta_slow 2")));
}

TEST(Rope, LongropeHasOtherFrequenciesForLongSequences) {
  const RopeConfig config{.base = 100,
                          .scaling = RopeScaling::longrope,
                          .original_max_positions = 20,
                          .attention_factor = 1.5,
                          .short_factors = {1, 2},
                          .long_factors = {4, 5}};
  const RopeFrequencies at_most = rope_frequencies(config, 4, 20), beyond = rope_frequencies(config, 4, 21);
  EXPECT_THAT(at_most.inverse, ::testing::ElementsAre(1, ::testing::DoubleEq(0.1 / 2)));
  EXPECT_THAT(beyond.inverse, ::testing::ElementsAre(0.25, ::testing::DoubleEq(0.1 / 5)));
  EXPECT_EQ(beyond.attention_factor, 1.5);
  EXPECT_THAT([&] { rope_frequencies(config, 8, 20); },
              ThrowsMessage<InvalidArgument>(HasSubstr("2 short and 2 long factors")));
}

TEST(Rope, DimensionsBeyondTheRotatedShareStayAsTheyAre) {
  const RopeFrequencies half = rope_frequencies({.base = 100, .rotated = 0.5}, 8, 1);
  EXPECT_EQ(half.inverse.size(), 2u);  // frequencies of a head of 4 dimensions
  const at::Tensor heads = at::randn({1, 3, 2, 8}, at::kDouble);
  const RopeTables tables = rope_tables(half, 3, at::TensorOptions(at::kDouble));
  const at::Tensor rotated = rotate(heads, tables);
  EXPECT_TRUE(at::equal(rotated.narrow(-1, 4, 4), heads.narrow(-1, 4, 4)));
  EXPECT_TRUE(at::equal(rotated.narrow(-1, 0, 4), rotate(heads.narrow(-1, 0, 4), tables)));
  EXPECT_FALSE(at::equal(rotated.narrow(-1, 0, 4), heads.narrow(-1, 0, 4)));
}

}  // namespace rope_test
}  // namespace gainlens::models
