#include "sweep/chunk_reducer.h"

#include "core/error.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace gainlens::sweep {
namespace chunk_reducer_test {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

struct Field {
  std::string name;
  at::Tensor kernels::QueryStatistics::*tensor;
};

const std::vector<Field> fields{
    {"n_eff", &kernels::QueryStatistics::n_eff},
    {"entropy", &kernels::QueryStatistics::entropy},
    {"residual", &kernels::QueryStatistics::residual},
    {"observation_precision", &kernels::QueryStatistics::observation_precision},
    {"log_observation_precision", &kernels::QueryStatistics::log_observation_precision},
    {"kalman_gain", &kernels::QueryStatistics::kalman_gain},
    {"kalman_gain_scaled", &kernels::QueryStatistics::kalman_gain_scaled},
    {"without_first_n_eff", &kernels::QueryStatistics::without_first_n_eff},
    {"without_first_kalman_gain", &kernels::QueryStatistics::without_first_kalman_gain},
    {"estimate_norm", &kernels::QueryStatistics::estimate_norm},
    {"gained_estimate_norm", &kernels::QueryStatistics::gained_estimate_norm},
    {"without_first_norm", &kernels::QueryStatistics::without_first_norm},
};

/// Each field has a number of its own, so that a test notices if fields are mixed up: 100, 200, ... Its entries are
/// this number + 10 head + query.
double number_of(const std::string& field) {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const Field& candidate) { return candidate.name == field; });
  return 100 * static_cast<double>(found - fields.begin() + 1);
}

/// Two heads, eight queries. Scalar fields are as above; first_mass of key m is 0.1 m + 0.01 query.
kernels::QueryStatistics ramp_statistics() {
  const at::Tensor ramp = at::arange(8, at::kDouble).unsqueeze(0) + 10 * at::arange(2, at::kDouble).unsqueeze(1);
  kernels::QueryStatistics statistics;
  for (const Field& field : fields) statistics.*field.tensor = ramp + number_of(field.name);
  statistics.value_variance = at::tensor({2.0, 4.0}).to(at::kDouble).view({1, 2});
  const at::Tensor by_key =
      0.1 * at::arange(8, at::kDouble).view({1, 1, 8}) + 0.01 * at::arange(8, at::kDouble).view({1, 8, 1});
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

const at::Tensor values =
    at::stack({at::arange(8, at::kDouble) * 3, at::arange(8, at::kDouble) * 4}, -1).unsqueeze(0);  // norms 5 t

TEST(ChunkReducer, EveryFieldGoesToItsOwnDatasets) {
  ChunkReducer reducer({3}, layout_of_two_heads(), 8, true);
  reducer.add(3, ramp_statistics(), values);
  const auto result = std::move(reducer).finish();
  const auto expect_window = [&](const std::string& name, double mean, double variance) {
    const auto& found = result.summary.at(name);
    EXPECT_EQ(found.shape, (std::vector<std::int64_t>{1, 2})) << name;
    EXPECT_THAT(found.values, ElementsAre(DoubleEq(mean), DoubleEq(mean + 10))) << name;
    EXPECT_THAT(result.summary.at(name + "_var").values, ElementsAre(DoubleEq(variance), DoubleEq(variance))) << name;
  };
  for (const Field& field : fields) {
    const bool norm = field.name.ends_with("_norm"), half = norm || field.name.starts_with("without_first_");
    const double number = number_of(field.name);
    expect_window(field.name, number + (half ? 5.5 : 6.5), half ? 1.25 : 0.25);  // queries 4..7, or 6 and 7
    EXPECT_EQ(result.profile.contains(field.name), !norm) << field.name;
    EXPECT_EQ(result.queries.contains(field.name), !norm) << field.name;
    if (norm) continue;
    EXPECT_DOUBLE_EQ(result.profile.at(field.name).values[64 + 16], number + 12)
        << field.name;  // head 1, query 2: bin 16
    EXPECT_DOUBLE_EQ(result.queries.at(field.name).values[8 + 3], number + 13) << field.name;  // head 1, query 3
  }
  for (const std::string name : {"kalman_gain", "kalman_gain_scaled"})
    expect_window(name + "_half", number_of(name) + 5.5, 1.25);
  EXPECT_DOUBLE_EQ(result.summary.at("bos_mass").values[0], 0.055);
  EXPECT_DOUBLE_EQ(result.summary.at("first_mass").values[2], 0.2 + 0.055);
  EXPECT_DOUBLE_EQ(result.summary.at("column_mean").values[9], 9);
  for (const char* absent : {"n_eff_half", "gate", "sink_logit_mass"})
    EXPECT_FALSE(result.summary.contains(absent)) << absent;
}

TEST(ChunkReducer, ProfileAndValueNorms) {
  ChunkReducer reducer({0}, layout_of_two_heads(), 8, false);
  reducer.add(0, ramp_statistics(), values);
  const auto result = std::move(reducer).finish();
  const auto& profile = result.profile.at("n_eff").values;
  EXPECT_DOUBLE_EQ(profile[0], number_of("n_eff"));
  EXPECT_DOUBLE_EQ(profile[8], number_of("n_eff") + 1);  // query 1 of 8 lies in bin 8
  EXPECT_TRUE(std::isnan(profile[1]));
  EXPECT_DOUBLE_EQ(result.values.at("norm").values[56], 35);
  EXPECT_DOUBLE_EQ(result.values.at("first_norm").values[7], 35);
  EXPECT_FALSE(result.profile.contains("kalman_gain_half"));
  EXPECT_TRUE(result.queries.empty());
}

TEST(ChunkReducer, PerQueryNumbersAreKeptOnRequest) {
  ChunkReducer reducer({0}, layout_of_two_heads(), 8, true);
  reducer.add(0, ramp_statistics(), values);
  const auto result = std::move(reducer).finish();
  EXPECT_EQ(result.queries.at("n_eff").shape, (std::vector<std::int64_t>{1, 2, 8}));
  EXPECT_DOUBLE_EQ(result.queries.at("n_eff").values[9], number_of("n_eff") + 11);
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
  for (const Field& field : fields) statistics.*field.tensor = (statistics.*field.tensor).slice(1, 0, 4);
  statistics.first_mass = statistics.first_mass.slice(1, 0, 4);
  reducer.add(0, statistics, values.slice(1, 0, 4));
  const auto result = std::move(reducer).finish();
  EXPECT_DOUBLE_EQ(result.values.at("first_norm").values[3], 15);
  EXPECT_TRUE(std::isnan(result.values.at("first_norm").values[4]));
}

TEST(ChunkReducer, ValueNormsAndVarianceByHand) {
  ChunkReducer reducer({0}, layout_of_two_heads(), 8, false);
  reducer.add(0, ramp_statistics(), values + 1);
  const auto result = std::move(reducer).finish();
  EXPECT_DOUBLE_EQ(result.values.at("min_norm").values[0],
                   std::sqrt(16.0 + 25));  // key 1: (4, 5); key 0, (1, 1), is not among them
  EXPECT_DOUBLE_EQ(result.values.at("variance").values[0], 3);
}

TEST(ChunkReducer, FewerKvHeadsAreRepeatedAndNoSinkHasNoMass) {
  hooks::AttentionLayout layout = layout_of_two_heads();
  layout.heads = 2;
  layout.kv_heads = 2;
  layout.layer_kv_heads = {1, 2, 2, 2};
  layout.sink_logits = true;
  layout.sink_layers = {false, true, true, true};
  ChunkReducer reducer({0, 1}, layout, 8, false);
  auto statistics = ramp_statistics();
  reducer.add(0, statistics, values);
  statistics.sink_logit_mass = at::full({2, 8}, 0.25, at::kDouble);
  statistics.value_variance = statistics.value_variance.repeat_interleave(2, 0);
  reducer.add(1, statistics, at::cat({values, values * 2}));
  const auto result = std::move(reducer).finish();
  EXPECT_THAT(result.summary.at("sink_logit_mass").values, ElementsAre(0, 0, 0.25, 0.25));
  EXPECT_EQ(result.values.at("min_norm").shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_THAT(result.values.at("min_norm").values, ElementsAre(5, 5, 5, 10)) << "layer 0 has one KV head";
  ChunkReducer without({0}, layout, 8, false);
  without.add(0, ramp_statistics(), values);
  EXPECT_FALSE(std::move(without).finish().summary.contains("sink_logit_mass")) << "no measured layer has one";
}

TEST(ChunkReducer, SinkLogitMassHasNeitherVarianceNorQueries) {
  hooks::AttentionLayout layout = layout_of_two_heads();
  layout.sink_logits = true;
  ChunkReducer reducer({0}, layout, 8, true);
  auto statistics = ramp_statistics();
  statistics.sink_logit_mass =
      0.1 * at::arange(2, at::kDouble).unsqueeze(1) + 0.01 * at::arange(8, at::kDouble).unsqueeze(0);
  reducer.add(0, statistics, values);
  const auto result = std::move(reducer).finish();
  EXPECT_THAT(result.summary.at("sink_logit_mass").values,
              ElementsAre(DoubleEq(0.055), DoubleEq(0.155)));  // queries 4..7
  EXPECT_DOUBLE_EQ(result.profile.at("sink_logit_mass").values[64 + 16], 0.12);
  EXPECT_FALSE(result.summary.contains("sink_logit_mass_var"));
  EXPECT_FALSE(result.queries.contains("sink_logit_mass"));
}

/// Every second-half query of head 0 has the given numbers. Head 1 has no weight on key 0. With `values`, mu = 5 and
/// epsilon = 0.
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
  EXPECT_DOUBLE_EQ(summary.at("sink_bound_slack_min").values[1],
                   -0.75);  // of the other head, whose numbers no attention could have
  EXPECT_DOUBLE_EQ(summary.at("sink_alignment").values[0], 0.8);
}

/// Random attention over values that share a direction. Key 0 has a small value. A bias gives it most of the weight.
void expect_lemma(at::ScalarType type, double tolerance) {
  at::Generator generator = at::detail::createCPUGenerator(1);
  const auto normal = [&](at::IntArrayRef sizes) {
    return at::randn(sizes, generator, at::TensorOptions(at::kDouble));
  };
  at::Tensor value = 10 + normal({1, 64, 2});
  value.select(1, 0).mul_(1e-3);
  kernels::AttentionPlan plan({.key_bias = at::zeros({64})});
  plan.options().key_bias[0] = 8.0;
  value = value.to(type);
  ChunkReducer reducer({0}, layout_of_two_heads(), 64, false);
  reducer.add(0, kernels::attention_statistics(plan, normal({2, 64, 2}).to(type), normal({1, 64, 2}).to(type), value),
              value);
  const auto summary = std::move(reducer).finish().summary;
  for (const std::size_t head : {0, 1}) {
    EXPECT_GE(summary.at("sink_bound_slack_min").values[head], -tolerance);
    EXPECT_LT(summary.at("sink_bound_slack").values[head],
              0.1);  // the bound is tight: the values are aligned, and key 0 adds nothing
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
  statistics.sink_logit_mass = at::full({2, 8}, 0.5, at::kDouble);
  statistics.first_weight = at::full({2, 8}, 0.9, at::kDouble);  // among the keys
  reducer.add(0, statistics, values);
  EXPECT_DOUBLE_EQ(std::move(reducer).finish().summary.at("sink_bound_slack").values[0], 0.15);
}

TEST(ChunkReducer, AMissingLayerIsOurMistake) {
  ChunkReducer reducer({0, 1}, layout_of_two_heads(), 8, false);
  reducer.add(0, ramp_statistics(), values);
  EXPECT_THROW(std::move(reducer).finish(), InternalError);
}

}  // namespace chunk_reducer_test
}  // namespace gainlens::sweep
