#include "sweep/sink_collector.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

namespace gainlens::sweep {
namespace sink_collector_test {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr std::int64_t length = 600, dim = 16;

std::vector<tokenizers::TokenId> counting_tokens() {
  std::vector<tokenizers::TokenId> tokens(length);
  std::iota(tokens.begin(), tokens.end(), 1000);
  return tokens;
}

at::Tensor normal(at::IntArrayRef sizes, std::uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::TensorOptions(at::kFloat));
}

/// Two kv heads with two query heads each. Key 40 of kv head 1 attracts every query, and its value is short.
struct Planted {
  hooks::Qkv qkv{normal({1, 4, length, dim}, 1), normal({1, 2, length, dim}, 2), normal({1, 2, length, dim}, 3)};
  at::Tensor before = normal({1, length, 8}, 4), after = normal({1, length, 8}, 5);

  Planted() {
    qkv.query.select(3, 3).fill_(6);
    qkv.key.select(3, 3).zero_();
    qkv.key[0][1][40][3] = 6;
    qkv.value[0][1][40] *= 0.01;
    before[0][40][5] = -700;
    after[0][40][5] = 900;
    after[0][7][2] = -300;
    after[0][599][1] = 300;
  }

  runfile::ShardResult collect(std::optional<std::int64_t> window) const {
    kernels::AttentionPlan plan(
        {.window = window, .returned = {.key_means = collected_keys, .min_key_mean = runfile::min_stored_mean}});
    const std::vector<tokenizers::TokenId> tokens = counting_tokens();
    SinkCollector collector({2, 5}, 4, tokens);
    for (const std::int64_t layer : {2, 5}) {
      collector.see_stream_before(before);
      if (layer == 5)
        collector.see_attention(layer, kernels::attention_statistics(plan, qkv.query[0], qkv.key[0], qkv.value[0]),
                                qkv);
      if (layer == 2) {  // a layer in which every query gives every key the same weight
        const at::Tensor none = at::zeros_like(qkv.query);
        collector.see_attention(layer, kernels::attention_statistics(plan, none[0], qkv.key[0], qkv.value[0]),
                                {none, qkv.key, qkv.value});
      }
      collector.see_stream_after(layer, after);
    }
    runfile::ShardResult shard;
    std::move(collector).finish([](tokenizers::TokenId id) { return "t" + std::to_string(id); }, shard);
    return shard;
  }
};

double ratio_to_median(std::vector<double> values, std::size_t place) {
  const double own = values[place];
  std::sort(values.begin(), values.end());
  return own / ((values[values.size() / 2 - 1] + values[values.size() / 2]) / 2);
}

std::vector<double> numbers(const at::Tensor& t) {
  const at::Tensor d = t.to(at::kDouble).contiguous();
  return {d.const_data_ptr<double>(), d.const_data_ptr<double>() + d.numel()};
}

TEST(SinkCollector, APlantedSinkWithWhatMakesItOne) {
  const Planted in;
  for (const std::optional<std::int64_t> window : {std::optional<std::int64_t>(), std::optional<std::int64_t>(32)}) {
    const runfile::ShardResult shard = in.collect(window);
    EXPECT_EQ(shard.sinks.at("position").shape, (std::vector<std::int64_t>{2, 4, 16}));
    const auto at = [&](const char* name, std::size_t layer, std::size_t head, std::size_t rank = 0) {
      return shard.sinks.at(name).values[(layer * 4 + head) * 16 + rank];
    };
    for (const std::size_t head : {2u, 3u}) {
      EXPECT_EQ(at("position", 1, head), 40);
      EXPECT_EQ(at("token", 1, head), 1040);
      EXPECT_EQ(at("queries", 1, head), window ? 32 : 560);
      EXPECT_GT(at("column_mean", 1, head), 0.8);
      EXPECT_EQ(shard.sink_text[(4 + head) * 16], "t1040");
      // In the window no query of the second half sees key 40.
      EXPECT_EQ(at("second_half_mean", 1, head) > 0.8, !window);
      EXPECT_NEAR(at("value_norm_ratio", 1, head), ratio_to_median(numbers(in.qkv.value[0][1].norm(2, -1)), 40), 1e-6);
      EXPECT_NEAR(at("key_norm_ratio", 1, head), ratio_to_median(numbers(in.qkv.key[0][1].norm(2, -1)), 40), 1e-5);
      const at::Tensor query = in.qkv.query[0][static_cast<std::int64_t>(head)].slice(0, 300).mean(0);
      const at::Tensor key = in.qkv.key[0][1][40];
      EXPECT_NEAR(at("key_query_cosine", 1, head), (key.dot(query) / (key.norm() * query.norm())).item<double>(), 1e-5);
      EXPECT_NEAR(at("stream_ratio", 1, head), ratio_to_median(numbers(std::get<0>(in.before[0].abs().max(1))), 40),
                  1e-4);
      EXPECT_NEAR(at("stream_ratio_after", 1, head),
                  ratio_to_median(numbers(std::get<0>(in.after[0].abs().max(1))), 40), 1e-4);
      EXPECT_EQ(at("stream_dimension", 1, head), 5);
      const at::Tensor own = in.before[0][40], first = in.before[0][0];
      EXPECT_NEAR(at("stream_cosine", 1, head), (own.dot(first) / (own.norm() * first.norm())).item<double>(), 1e-5);
    }
    if (window) continue;  // few queries see the first keys, and those see few others
    for (const std::size_t head : {2u, 3u}) {
      EXPECT_EQ(at("position", 1, head, 1), -1);
      EXPECT_TRUE(std::isnan(at("column_mean", 1, head, 1)));
    }
    // Uniform weights: no key but the last few, which few queries see, has a tenth.
    for (std::size_t head = 0; head < 4; ++head) {
      EXPECT_EQ(at("position", 0, head), -1);
      EXPECT_EQ(shard.sink_text[head * 16], "");
    }
  }
}

TEST(SinkCollector, AKeyThatFewQueriesSeeIsNone) {
  // 600 tokens: an eighth of the queries is 75.
  for (const auto& [position, is_sink] : {std::pair<std::int64_t, bool>{525, true}, {526, false}}) {
    Planted in;
    in.qkv.key[0][1][40][3] = 0;
    in.qkv.key[0][1][position][3] = 6;
    const runfile::ShardResult shard = in.collect({});
    const double found = shard.sinks.at("position").values[(4 + 2) * 16];
    EXPECT_EQ(found, is_sink ? static_cast<double>(position) : -1);
  }
}

TEST(SinkCollector, NEffAndGainWithoutTheSinks) {
  const Planted in;
  const kernels::AttentionOptions options{.returned = {.key_means = collected_keys, .min_key_mean = 0.1}};
  kernels::AttentionPlan plan(options);
  const kernels::QueryStatistics all =
      kernels::attention_statistics(plan, in.qkv.query[0], in.qkv.key[0], in.qkv.value[0]);
  const std::vector<tokenizers::TokenId> tokens = counting_tokens();
  SinkCollector collector({0}, 4, tokens);
  collector.see_stream_before(in.before);
  collector.see_attention(0, all, in.qkv);
  const SinkCollector::WithoutSinks found = collector.without_sinks(0, all, in.qkv, options);
  const at::Tensor bias = at::zeros({length}, at::kDouble);
  bias[40] = -INFINITY;
  const kernels::QueryStatistics rest =
      kernels::attention_statistics_reference({.key_bias = bias}, in.qkv.query[0], in.qkv.key[0], in.qkv.value[0]);
  for (const std::int64_t head : {2, 3}) {
    EXPECT_LT((found.n_eff[head] / rest.n_eff[head] - 1).abs().max().item<double>(), 1e-5);
    EXPECT_LT((found.kalman_gain[head] / rest.kalman_gain[head] - 1).abs().max().item<double>(), 1e-5);
    EXPECT_GT((found.n_eff[head] / all.n_eff[head]).slice(0, 100).min().item<double>(), 2);
  }
  for (const std::int64_t head : {0, 1}) EXPECT_TRUE(found.n_eff[head].equal(all.n_eff[head]));  // no sink
}

TEST(SinkCollector, KeyZeroAsTheOnlySinkGivesTheStatisticsWithoutIt) {
  Planted in;
  in.qkv.key.select(3, 3).zero_();
  in.qkv.key[0][0][0][3] = 6;
  kernels::AttentionPlan plan({.returned = {.key_means = collected_keys, .min_key_mean = 0.1}});
  const kernels::QueryStatistics all =
      kernels::attention_statistics(plan, in.qkv.query[0], in.qkv.key[0], in.qkv.value[0]);
  const std::vector<tokenizers::TokenId> tokens = counting_tokens();
  SinkCollector collector({0}, 4, tokens);
  collector.see_stream_before(in.before);
  collector.see_attention(0, all, in.qkv);
  const SinkCollector::WithoutSinks found = collector.without_sinks(0, all, in.qkv, {});
  EXPECT_TRUE(found.n_eff[0].slice(0, 1).equal(all.without_first_n_eff[0].slice(0, 1)));
  EXPECT_TRUE(std::isnan(found.n_eff[0][0].item<double>()));  // sees key 0 alone
  EXPECT_TRUE(found.kalman_gain[1].slice(0, 1).equal(all.without_first_kalman_gain[1].slice(0, 1)));
}

TEST(SinkCollector, TheLargestOfTheStream) {
  const runfile::ShardResult shard = Planted().collect({});
  EXPECT_EQ(shard.stream.at("position").shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_THAT(shard.stream.at("position").values, ElementsAre(40, 7, 599, 40, 7, 599));  // of equal ones the earlier
  EXPECT_THAT(shard.stream.at("token").values, ElementsAre(1040, 1007, 1599, 1040, 1007, 1599));
  EXPECT_THAT(shard.stream.at("dimension").values, ElementsAre(5, 2, 1, 5, 2, 1));
  EXPECT_THAT(shard.stream.at("value").values, ElementsAre(900, 300, 300, 900, 300, 300));
  EXPECT_THAT(shard.stream.at("median").values, ElementsAre(DoubleNear(1.7, 0.3), DoubleNear(1.7, 0.3)));
}

TEST(SinkCollector, TextsBelowSixteenTokensHaveNone) {
  const std::vector<tokenizers::TokenId> tokens(15, 3);
  SinkCollector collector({0}, 1, tokens);
  const hooks::Qkv qkv{at::zeros({1, 1, 15, 4}), normal({1, 1, 15, 4}, 1), normal({1, 1, 15, 4}, 2)};
  kernels::AttentionPlan plan({.returned = {.key_means = collected_keys, .min_key_mean = 0.1}});
  collector.see_stream_before(normal({1, 15, 4}, 3));
  collector.see_attention(0, kernels::attention_statistics(plan, qkv.query[0], qkv.key[0], qkv.value[0]), qkv);
  collector.see_stream_after(0, normal({1, 15, 4}, 4));
  runfile::ShardResult shard;
  std::move(collector).finish([](tokenizers::TokenId) { return "never"; }, shard);
  for (const double position : shard.sinks.at("position").values) EXPECT_EQ(position, -1);
}

}  // namespace sink_collector_test
}  // namespace gainlens::sweep
