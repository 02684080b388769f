// Mean weights of all keys: the oracle against a T x T matrix, every backend against the oracle.

#include "kernels/key_means.h"
#include "kernels/attention_cases.h"
#include "kernels/attention_testing.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::kernels {
namespace key_means_test {

using namespace testing;

AttentionOptions with_means(AttentionOptions options, KeyMeans means, double least = 0.1) {
  options.returned.key_means = means;
  options.returned.min_key_mean = least;
  return options;
}

/// Weights [head, query, key] of causal attention with a window, from a T x T matrix.
at::Tensor all_weights(const Inputs& in, std::int64_t window) {
  const std::int64_t length = in.query.size(1), group = in.query.size(0) / in.key.size(0);
  const at::Tensor scores = at::matmul(in.query, in.key.repeat_interleave(group, 0).transpose(1, 2)) /
                            std::sqrt(static_cast<double>(in.query.size(2)));
  const at::Tensor place = at::arange(length), distance = place.unsqueeze(1) - place.unsqueeze(0);
  const at::Tensor hidden = distance.lt(0).logical_or(distance.ge(window));
  return at::softmax(scores.masked_fill(hidden, -INFINITY), -1);
}

TEST(KeyMeans, ReferenceEqualsTheMatrix) {
  const std::int64_t length = 101, window = 30;
  const Inputs in = random_inputs(length, 8, 2, 2, 3);
  const QueryStatistics found = reference(with_means({.window = window}, KeyMeans::all), in);
  const at::Tensor p = all_weights(in, window);
  const at::Tensor place = at::arange(length), distance = place.unsqueeze(1) - place.unsqueeze(0);
  const at::Tensor seeing = distance.ge(0).logical_and(distance.lt(window)).sum(0);
  EXPECT_TRUE(found.key_queries.equal(seeing.expand({4, length})));
  EXPECT_LT(relative_error(found.key_mean.select(2, 0), p.sum(1) / seeing), 1e-12);
  EXPECT_LT(relative_error(found.key_mean.select(2, 1), p.slice(1, 51).mean(1)), 1e-12);  // ceil(101 / 2)
  EXPECT_LT(relative_error(found.key_mean.select(2, 2), p.slice(1, 76).mean(1)), 1e-12);  // ceil(3 101 / 4)
  // Shares of all attention.
  EXPECT_LT((found.key_mean.slice(2, 1).sum(1) - 1).abs().max().item<double>(), 1e-12);
}

struct MeansCase {
  Mask mask;
  Shape shape;
};

class EveryBackend : public ::testing::TestWithParam<MeansCase> {};

TEST_P(EveryBackend, GivesTheMeansOfTheReference) {
  const auto& [mask, shape] = GetParam();
  AttentionOptions options = options_of(mask, shape);
  options.returned.per_dimension = false;
  const Inputs in = shape.inputs();
  const QueryStatistics expected = reference(with_means(options, KeyMeans::all), in);
  const at::Tensor column_mean = expected.key_mean.select(2, 0);
  // A threshold halfway between two column means, so that rounding does not decide.
  const at::Tensor sorted = std::get<0>(at::sort(column_mean.masked_select(column_mean.gt(0)).flatten()));
  const std::int64_t middle = sorted.numel() * 9 / 10;
  const double least = std::max(1e-3, (sorted[middle] + sorted[middle - 1]).item<double>() / 2);
  const at::Tensor small = column_mean.ge(least).logical_not().unsqueeze(2);
  const at::Tensor large_only = expected.key_mean.masked_fill(small, NAN);
  for (const AttentionBackend backend : {AttentionBackend::streaming, AttentionBackend::composed}) {
    options.backend = backend;
    for (const auto& [type, tolerance] : {std::pair{at::kDouble, 1e-10}, std::pair{at::kFloat, 3e-5}}) {
      const QueryStatistics all = streamed(with_means(options, KeyMeans::all), cast(in, type));
      EXPECT_LT(relative_error(all.key_mean, expected.key_mean), tolerance) << static_cast<int>(backend);
      EXPECT_TRUE(all.key_queries.equal(expected.key_queries));
      const QueryStatistics above = streamed(with_means(options, KeyMeans::above, least), cast(in, type));
      EXPECT_LT(relative_error(above.key_mean, large_only), tolerance) << static_cast<int>(backend);
      EXPECT_TRUE(above.key_queries.equal(expected.key_queries));
    }
  }
}

std::vector<MeansCase> means_cases() {
  std::vector<MeansCase> cases;
  for (const Mask& mask : all_masks) {
    if (mask.precision_dims > 0 && mask.name != "everything") continue;
    if (mask.window == 1) continue;  // every column mean is 1: a threshold cannot lie between two of them
    cases.push_back({mask, {150, 24, 2, 2}});
  }
  cases.push_back({all_masks.front(), {700, 24, 1, 3}});
  cases.push_back({all_masks[5], {700, 5, 2, 1}});  // window 100
  cases.push_back({all_masks.front(), {400, 40, 1, 2, 24}});
  cases.push_back({all_masks.back(), {400, 24, 2, 1}});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Masks, EveryBackend, ::testing::ValuesIn(means_cases()));

TEST(KeyMeans, APlantedSinkIsFoundWhereverItIs) {
  for (const std::optional<std::int64_t> window : {std::optional<std::int64_t>(), std::optional<std::int64_t>(32)}) {
    Inputs in = cast(random_inputs(600, 16, 2, 2, 1), at::kFloat);
    // Key 40 of kv head 1 points along a dimension in which every query of the head is large.
    in.query.select(2, 3).fill_(6);
    in.key.select(2, 3).zero_();
    in.key[1][40][3] = 6;
    const QueryStatistics found = streamed(with_means({.window = window}, KeyMeans::above, 0.3), in);
    const at::Tensor sinks = found.key_mean.select(2, 0).ge(0.3);
    const std::int64_t seeing = window ? 32 : 560;
    // The last keys are seen by few queries, each of which gives itself some weight.
    const at::Tensor seen_often = found.key_queries.ge(16);
    const at::Tensor counted = sinks.logical_and(seen_often);
    EXPECT_EQ(counted[0].slice(0, 1).sum().item<std::int64_t>(), 0);
    for (const std::int64_t head : {2, 3}) {
      EXPECT_TRUE(counted[head][40].item<bool>());
      EXPECT_GT(found.key_mean[head][40][0].item<double>(), 0.8);
      EXPECT_EQ(found.key_queries[head][40].item<std::int64_t>(), seeing);
    }
  }
}

TEST(KeyMeans, ThreadsDoNotChangeTheBits) {
  const Inputs in = cast(random_inputs(900, 16, 3, 2, 4), at::kFloat);
  const int before = at::get_num_threads();
  for (const KeyMeans means : {KeyMeans::all, KeyMeans::above}) {
    const AttentionOptions options = with_means({}, means, 0.01);
    at::set_num_threads(1);
    const QueryStatistics one = streamed(options, in);
    at::set_num_threads(7);
    const QueryStatistics seven = streamed(options, in);
    EXPECT_TRUE(same_bits(one.key_mean, seven.key_mean));
  }
  at::set_num_threads(before);
}

TEST(KeyMeans, DoNotChangeTheOtherFields) {
  const Inputs in = cast(random_inputs(500, 16, 2, 2, 4), at::kFloat);
  const QueryStatistics without = streamed({.window = 200}, in);
  for (const KeyMeans means : {KeyMeans::all, KeyMeans::above}) {
    const QueryStatistics with = streamed(with_means({.window = 200}, means), in);
    for (const auto& [name, tensor] : all_tensors()) {
      if (!(without.*tensor).defined()) continue;
      EXPECT_TRUE(same_bits(without.*tensor, with.*tensor)) << name;
    }
  }
  EXPECT_FALSE(without.key_mean.defined());
  EXPECT_FALSE(without.key_queries.defined());
}

TEST(KeyMeans, SequencesAreCountedFromTheirOwnStart) {
  const Inputs in = random_inputs(200, 8, 1, 2, 3);
  const AttentionOptions packed = with_means({.sequences = {{10, 90}, {100, 200}}}, KeyMeans::all);
  for (const bool oracle : {true, false}) {
    const QueryStatistics found = oracle ? reference(packed, in) : streamed(packed, in);
    for (const Sequence& sequence : packed.sequences) {
      const auto part = [&](const at::Tensor& t) { return t.slice(1, sequence.begin, sequence.end); };
      const QueryStatistics alone =
          reference(with_means({}, KeyMeans::all), {part(in.query), part(in.key), part(in.value)});
      EXPECT_LT(relative_error(part(found.key_mean), alone.key_mean), 1e-10);
      EXPECT_TRUE(part(found.key_queries).equal(alone.key_queries));
    }
    EXPECT_TRUE(at::isnan(found.key_mean.slice(1, 90, 100)).all().item<bool>());
    EXPECT_EQ(found.key_queries.slice(1, 0, 10).sum().item<std::int64_t>(), 0);
  }
}

TEST(KeyMeans, FirstQueryAndHiddenKeys) {
  const Inputs in = random_inputs(300, 8, 1, 2, 3);
  AttentionOptions options = with_means({.first_query = 130}, KeyMeans::all);
  options.key_bias = at::zeros({300}, at::kDouble);
  options.key_bias[17] = -INFINITY;
  options.distance_bias = at::zeros({300}, at::kDouble);
  options.distance_bias.slice(0, 20, 40).fill_(-INFINITY);
  const QueryStatistics expected = reference(options, in), found = streamed(options, in);
  EXPECT_TRUE(found.key_queries.equal(expected.key_queries));
  EXPECT_EQ(found.key_queries[0][17].item<std::int64_t>(), 0);
  EXPECT_EQ(found.key_queries[1][100].item<std::int64_t>(), 300 - 130 - 10);  // distances 30 to 199, without 30 to 39
  EXPECT_EQ(found.key_queries[1][150].item<std::int64_t>(), 150 - 20);
  EXPECT_TRUE(at::isnan(found.key_mean[0][17]).all().item<bool>());
  EXPECT_LT(relative_error(found.key_mean, expected.key_mean), 1e-10);
}

TEST(KeyMeans, RefusesThresholdsOutOfRange) {
  const Inputs in = random_inputs(20, 8, 1, 1);
  EXPECT_THROW(streamed(with_means({}, KeyMeans::above, 0), in), InvalidArgument);
  EXPECT_THROW(streamed(with_means({}, KeyMeans::above, 1.1), in), InvalidArgument);
  EXPECT_THROW(streamed(with_means({}, KeyMeans::above, NAN), in), InvalidArgument);
}

}  // namespace key_means_test
}  // namespace gainlens::kernels
