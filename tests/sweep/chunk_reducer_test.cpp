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
                            &statistics.without_first_n_eff, &statistics.without_first_kalman_gain}) {
    *field = ramp.clone();
  }
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
                            &statistics.without_first_n_eff, &statistics.without_first_kalman_gain, &statistics.first_mass}) {
    *field = field->slice(1, 0, 4);
  }
  reducer.add(0, statistics, values.slice(1, 0, 4));
  const auto result = std::move(reducer).finish();
  EXPECT_DOUBLE_EQ(result.values.at("first_norm").values[3], 15);
  EXPECT_TRUE(std::isnan(result.values.at("first_norm").values[4]));
}

TEST(ChunkReducer, AMissingLayerIsOurMistake) {
  ChunkReducer reducer({0, 1}, layout_of_two_heads(), 8, false);
  reducer.add(0, ramp_statistics(), values);
  EXPECT_THROW(std::move(reducer).finish(), InternalError);
}

}  // namespace
}  // namespace gainlens::sweep
