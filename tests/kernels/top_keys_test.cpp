// The keys with the largest weights: the oracle against a T x T matrix, every backend against the oracle.

#include "kernels/attention_cases.h"
#include "kernels/attention_testing.h"
#include "kernels/streaming/top_scores.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace gainlens::kernels {
namespace top_keys_test {

using namespace testing;

TEST(TopScores, KeepsTheEarlierOfEqualScores) {
  std::array<float, 3> scores;
  std::array<std::int64_t, 3> keys;
  const TopScores<float> top{scores.data(), keys.data(), 3};
  top.clear();
  std::vector<float> found(100, 1);
  found[7] = found[70] = 2;
  found[3] = -std::numeric_limits<float>::infinity();
  top.add(found.data(), 3, 100, 1000);
  EXPECT_EQ(keys, (std::array<std::int64_t, 3>{1007, 1070, 1004}));
  EXPECT_EQ(scores, (std::array<float, 3>{2, 2, 1}));
  top.add(found.data(), 0, 8, 2000);  // equal ones that come later
  EXPECT_EQ(keys, (std::array<std::int64_t, 3>{1007, 1070, 2007}));
  top.clear();
  top.add(found.data(), 3, 4, 0);  // hidden
  EXPECT_EQ(keys, (std::array<std::int64_t, 3>{-1, -1, -1}));
}

TEST(TopKeys, ReferenceEqualsTheMatrix) {
  const std::int64_t length = 101, window = 30;
  const Inputs in = random_inputs(length, 8, 2, 2, 3);
  AttentionOptions options{.window = window};
  options.returned.top_keys = 5;
  const QueryStatistics found = reference(options, in);
  const at::Tensor scores = at::matmul(in.query, in.key.repeat_interleave(2, 0).transpose(1, 2)) / std::sqrt(8.0);
  const at::Tensor place = at::arange(length), distance = place.unsqueeze(1) - place.unsqueeze(0);
  const at::Tensor p = at::softmax(scores.masked_fill(distance.lt(0).logical_or(distance.ge(window)), -INFINITY), -1);
  const auto [weight, key] = at::topk(p, 5);
  EXPECT_TRUE(found.top_key.slice(1, 4).equal(key.slice(1, 4)));
  EXPECT_LT(relative_error(found.top_weight.slice(1, 4), weight.slice(1, 4)), 1e-12);
  // A query that sees fewer keys.
  EXPECT_TRUE(found.top_key.select(1, 1).slice(1, 2).eq(-1).all().item<bool>());
  EXPECT_TRUE(found.top_weight.select(1, 1).slice(1, 2).isnan().all().item<bool>());
}

struct TopCase {
  Mask mask;
  Shape shape;
};

class EveryTopBackend : public ::testing::TestWithParam<TopCase> {};

TEST_P(EveryTopBackend, GivesTheKeysOfTheReference) {
  const auto& [mask, shape] = GetParam();
  AttentionOptions options = options_of(mask, shape);
  options.returned.per_dimension = false;
  options.returned.top_keys = 9;
  const Inputs in = shape.inputs();
  const QueryStatistics expected = reference(options, in);
  for (const AttentionBackend backend : {AttentionBackend::streaming, AttentionBackend::composed}) {
    options.backend = backend;
    const QueryStatistics exact = streamed(options, in);
    EXPECT_TRUE(exact.top_key.equal(expected.top_key)) << static_cast<int>(backend);
    EXPECT_LT(relative_error(exact.top_weight, expected.top_weight), 1e-10) << static_cast<int>(backend);
    // In float32 keys of nearly equal weight may change places; their weights do not.
    const QueryStatistics rounded = streamed(options, cast(in, at::kFloat));
    EXPECT_LT(relative_error(rounded.top_weight, expected.top_weight), 3e-5) << static_cast<int>(backend);
    // What is asked for besides changes no bit.
    AttentionOptions without = options;
    without.returned.top_keys = 0;
    EXPECT_TRUE(same_bits(streamed(without, in).n_eff, exact.n_eff)) << static_cast<int>(backend);
  }
}

std::vector<TopCase> top_cases() {
  std::vector<TopCase> cases;
  for (const Mask& mask : all_masks) cases.push_back({mask, {150, 24, 2, 2}});
  cases.push_back({all_masks.front(), {700, 24, 1, 3}});
  cases.push_back({all_masks[5], {700, 5, 2, 1}});  // window 100
  cases.push_back({all_masks.back(), {400, 40, 1, 2, 24}});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(TopKeys, EveryTopBackend, ::testing::ValuesIn(top_cases()));

TEST(TopKeys, CountFromTheStartOfTheirSequence) {
  const Inputs in = random_inputs(60, 8, 1, 2);
  AttentionOptions options;
  options.returned.top_keys = 4;
  options.sequences = {{0, 25}, {30, 60}};
  const QueryStatistics found = streamed(options, in);
  options.sequences.clear();
  const QueryStatistics own = streamed(options, {in.query.slice(1, 30), in.key.slice(1, 30), in.value.slice(1, 30)});
  EXPECT_TRUE(found.top_key.slice(1, 30).equal(own.top_key));
  EXPECT_TRUE(found.top_key.slice(1, 25, 30).eq(-1).all().item<bool>());
}

TEST(TopKeys, RefusesMoreThanItKeeps) {
  AttentionOptions options;
  options.returned.top_keys = max_top_keys + 1;
  EXPECT_THROW(streamed(options, random_inputs(8, 4, 1, 1)), InvalidArgument);
}

}  // namespace top_keys_test
}  // namespace gainlens::kernels
