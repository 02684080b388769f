#include "sweep/chunk_reducer.h"

#include "core/error.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::sweep {
namespace {

/// Two heads, eight queries: every scalar field holds 10 head + query, first_mass of key m 0.1 m + 0.01 query.
kernels::QueryStatistics ramp_statistics() {
  const at::Tensor ramp = at::arange(8, at::kDouble).unsqueeze(0) + 10 * at::arange(2, at::kDouble).unsqueeze(1);
  kernels::QueryStatistics statistics;
  for (at::Tensor* field : {&statistics.n_eff, &statistics.entropy, &statistics.residual, &statistics.observation_precision,
                            &statistics.log_observation_precision, &statistics.kalman_gain, &statistics.kalman_gain_scaled,
                            &statistics.without_first_n_eff, &statistics.without_first_kalman_gain, &statistics.estimate_norm,
                            &statistics.gained_estimate_norm, &statistics.without_first_norm}) {
    *field = ramp.clone();
  }
  statistics.value_variance = at::tensor({2.0, 4.0}).to(at::kDouble).view({1, 2});
  const at::Tensor by_key = 0.1 * at::arange(8, at::kDouble).view({1, 1, 8}) + 0.01 * at::arange(8, at::kDouble).view({1, 8, 1});
  statistics.first_mass = by_key.expand({2, 8, 8}).clone();
  statistics.column_mean = at::arange(16, at::kDouble).view({2, 8});
  return statistics;
}

hooks::AttentionLayout layout_of_two_heads() {
  hooks::AttentionLayout layout;
  layout.heads = 2;
  layout.kv_heads = 1;
  layout.head_dim = 2;
  layout.window = {0, 0, 0, 0};
  return layout;
}

const at::Tensor values = at::stack({at::arange(8, at::kDouble) * 3, at::arange(8, at::kDouble) * 4}, -1).unsqueeze(0);  // norms 5 t

TEST(ChunkReducer, WindowsByHand) {
  ChunkReducer reducer({3}, layout_of_two_heads(), 8, false);
  reducer.add(3, ramp_statistics(), values);
  const auto result = std::move(reducer).finish();
  EXPECT_EQ(result.summary.at("n_eff").shape, (std::vector<std::int64_t>{1, 2}));
  EXPECT_DOUBLE_EQ(result.summary.at("n_eff").values[0], 6.5);   // queries 6, 7
  EXPECT_DOUBLE_EQ(result.summary.at("n_eff").values[1], 16.5);  // the other head
  EXPECT_DOUBLE_EQ(result.summary.at("n_eff_var").values[0], 0.25);
  EXPECT_DOUBLE_EQ(result.summary.at("kalman_gain_half").values[0], 5.5);  // queries 4..7
  EXPECT_DOUBLE_EQ(result.summary.at("kalman_gain_half_var").values[0], 1.25);
  EXPECT_DOUBLE_EQ(result.summary.at("without_first_n_eff").values[0], 5.5);
  EXPECT_DOUBLE_EQ(result.summary.at("bos_mass").values[0], 0.055);
  EXPECT_DOUBLE_EQ(result.summary.at("first_mass").values[2], 0.2 + 0.055);
  EXPECT_DOUBLE_EQ(result.summary.at("column_mean").values[9], 9);
  EXPECT_FALSE(result.summary.contains("n_eff_half"));
  EXPECT_FALSE(result.summary.contains("gate"));
  EXPECT_FALSE(result.summary.contains("sink_logit_mass"));
  EXPECT_TRUE(result.queries.empty());
}

TEST(ChunkReducer, ProfileAndValueNorms) {
  ChunkReducer reducer({0}, layout_of_two_heads(), 8, false);
  reducer.add(0, ramp_statistics(), values);
  const auto result = std::move(reducer).finish();
  const auto& profile = result.profile.at("n_eff").values;
  EXPECT_DOUBLE_EQ(profile[0], 0);
  EXPECT_DOUBLE_EQ(profile[8], 1);  // query 1 of 8 lies in bin 8
  EXPECT_TRUE(std::isnan(profile[1]));
  EXPECT_DOUBLE_EQ(result.values.at("norm").values[56], 35);
  EXPECT_DOUBLE_EQ(result.values.at("first_norm").values[7], 35);
  EXPECT_FALSE(result.profile.contains("kalman_gain_half"));
}

TEST(ChunkReducer, PerQueryNumbersAreKeptOnRequest) {
  ChunkReducer reducer({0}, layout_of_two_heads(), 8, true);
  reducer.add(0, ramp_statistics(), values);
  const auto result = std::move(reducer).finish();
  EXPECT_EQ(result.queries.at("n_eff").shape, (std::vector<std::int64_t>{1, 2, 8}));
  EXPECT_DOUBLE_EQ(result.queries.at("n_eff").values[9], 11);
  EXPECT_EQ(result.queries.at("first_mass").shape, (std::vector<std::int64_t>{1, 2, 8, 8}));
  EXPECT_DOUBLE_EQ(result.queries.at("first_mass").values[8 + 2], 0.01 + 0.2);  // query 1, key 2
}

TEST(ChunkReducer, ElementwiseGateIsItsMeanOverDimensions) {
  ChunkReducer reducer({0}, layout_of_two_heads(), 8, false);
  reducer.add(0, ramp_statistics(), values);
  const at::Tensor gate = at::stack({at::full({8, 2}, 0.2), at::full({8, 2}, 0.6)}, -1);  // [position, head, head_dim]
  reducer.add_gate(0, gate);
  EXPECT_NEAR(std::move(reducer).finish().summary.at("gate").values[1], 0.4, 1e-7);
}

TEST(ChunkReducer, ChunkShorterThanTheFirstKeysLeavesNaN) {
  hooks::AttentionLayout layout = layout_of_two_heads();
  ChunkReducer reducer({0}, layout, 4, false);
  auto statistics = ramp_statistics();
  for (at::Tensor* field : {&statistics.n_eff, &statistics.entropy, &statistics.residual, &statistics.observation_precision,
                            &statistics.log_observation_precision, &statistics.kalman_gain, &statistics.kalman_gain_scaled,
                            &statistics.without_first_n_eff, &statistics.without_first_kalman_gain, &statistics.first_mass,
                            &statistics.estimate_norm, &statistics.gained_estimate_norm, &statistics.without_first_norm}) {
    *field = field->slice(1, 0, 4);
  }
  reducer.add(0, statistics, values.slice(1, 0, 4));
  const auto result = std::move(reducer).finish();
  EXPECT_DOUBLE_EQ(result.values.at("first_norm").values[3], 15);
  EXPECT_TRUE(std::isnan(result.values.at("first_norm").values[4]));
}

TEST(ChunkReducer, NormsAndVarianceByHand) {
  ChunkReducer reducer({0}, layout_of_two_heads(), 8, true);
  reducer.add(0, ramp_statistics(), values + 1);
  const auto result = std::move(reducer).finish();
  EXPECT_DOUBLE_EQ(result.summary.at("estimate_norm").values[0], 5.5);  // queries 4..7
  EXPECT_DOUBLE_EQ(result.summary.at("without_first_norm_var").values[1], 1.25);
  EXPECT_DOUBLE_EQ(result.values.at("min_norm").values[0], std::sqrt(16.0 + 25));  // key 1: (4, 5); key 0, (1, 1), is not among them
  EXPECT_DOUBLE_EQ(result.values.at("variance").values[0], 3);
  EXPECT_FALSE(result.profile.contains("estimate_norm"));
  EXPECT_FALSE(result.queries.contains("estimate_norm"));
}

/// Every second-half query of head 0 as given, of head 1 without weight on key 0; mu = 5, epsilon = 0 with `values`.
kernels::QueryStatistics sink_statistics(double weight, double estimate, double gained, double others) {
  auto statistics = ramp_statistics();
  statistics.first_mass.select(0, 0).fill_(weight);
  statistics.first_mass.select(0, 1).fill_(0);
  statistics.estimate_norm.fill_(estimate);
  statistics.gained_estimate_norm.fill_(gained);
  statistics.without_first_norm.fill_(others);
  return statistics;
}

TEST(ChunkReducer, SinkBoundByHand) {
  ChunkReducer reducer({0}, layout_of_two_heads(), 8, false);
  reducer.add(0, sink_statistics(0.9, 1, 0.2, 4), values);  // bound 1 - 1/4; with gain 1 - 0.2/4
  const auto summary = std::move(reducer).finish().summary;
  EXPECT_DOUBLE_EQ(summary.at("sink_bound").values[0], 0.75);
  EXPECT_DOUBLE_EQ(summary.at("sink_bound_gain").values[0], 0.95);
  EXPECT_DOUBLE_EQ(summary.at("sink_bound_vacuous").values[0], 0);
  EXPECT_DOUBLE_EQ(summary.at("sink_bound_gain_violated").values[0], 1);
  EXPECT_DOUBLE_EQ(summary.at("sink_bound_slack").values[0], 0.15);
  EXPECT_DOUBLE_EQ(summary.at("sink_bound_slack_min").values[0], 0.15);
  EXPECT_DOUBLE_EQ(summary.at("sink_bound_slack_min").values[1], -0.75);  // of the other head, which no attention could have
  EXPECT_DOUBLE_EQ(summary.at("sink_alignment").values[0], 0.8);
}

/// Random attention over values that share a direction; key 0 has a small value and, by its bias, most of the weight.
void expect_lemma(at::ScalarType type, double tolerance) {
  at::Generator generator = at::detail::createCPUGenerator(1);
  const auto normal = [&](at::IntArrayRef sizes) { return at::randn(sizes, generator, at::TensorOptions(at::kDouble)); };
  at::Tensor value = 10 + normal({1, 64, 2});
  value.select(1, 0).mul_(1e-3);
  kernels::AttentionPlan plan({.key_bias = at::zeros({64})});
  plan.options().key_bias[0] = 8.0;
  value = value.to(type);
  ChunkReducer reducer({0}, layout_of_two_heads(), 64, false);
  reducer.add(0, kernels::attention_statistics(plan, normal({2, 64, 2}).to(type), normal({1, 64, 2}).to(type), value), value);
  const auto summary = std::move(reducer).finish().summary;
  for (const std::size_t head : {0, 1}) {
    EXPECT_GE(summary.at("sink_bound_slack_min").values[head], -tolerance);
    EXPECT_LT(summary.at("sink_bound_slack").values[head], 0.1);  // tight: the values are aligned and key 0 adds nothing
    EXPECT_GT(summary.at("sink_bound").values[head], 0.9);
    EXPECT_GT(summary.at("sink_bound_gain").values[head], summary.at("sink_bound").values[head]);
  }
}

TEST(ChunkReducer, TheLemmaHoldsForWhatTheKernelMeasures) {
  expect_lemma(at::kDouble, 1e-12);
  expect_lemma(at::kFloat, bound_rounding);
}

TEST(ChunkReducer, SinkBoundLeavesOutTheSinkLogit) {
  ChunkReducer reducer({0}, layout_of_two_heads(), 8, false);
  auto statistics = sink_statistics(0.45, 1, 0.2, 4);
  statistics.sink_logit_mass = at::full({2, 8}, 0.5, at::kDouble);  // the weight among the keys is 0.9
  reducer.add(0, statistics, values);
  EXPECT_DOUBLE_EQ(std::move(reducer).finish().summary.at("sink_bound_slack").values[0], 0.15);
}

TEST(ChunkReducer, AMissingLayerIsOurMistake) {
  ChunkReducer reducer({0, 1}, layout_of_two_heads(), 8, false);
  reducer.add(0, ramp_statistics(), values);
  EXPECT_THROW(std::move(reducer).finish(), InternalError);
}

}  // namespace
}  // namespace gainlens::sweep
