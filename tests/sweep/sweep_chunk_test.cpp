#include "sweep/sweep_chunk.h"

#include "core/error.h"
#include "models/checkpoint/load_decoder.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::sweep {
namespace sweep_chunk_test {

const std::filesystem::path golden = GAINLENS_SOURCE_DIR "/tests/golden/models";

data::Chunk chunk_of(std::int64_t length) {
  data::Chunk chunk{length, 0, {}};
  for (std::int64_t i = 0; i < length; ++i) chunk.tokens.push_back(static_cast<tokenizers::TokenId>(2 + i * i % 31));
  return chunk;
}

SweepPlan plan_of(std::vector<std::int64_t> layers) {
  SweepPlan plan;
  plan.layers = std::move(layers);
  return plan;
}

TEST(SweepChunk, StatisticsOfEveryLayerAndTheLikelihood) {
  const auto model = models::load_decoder(golden / "llama");
  const auto measured = sweep_chunk(*model, chunk_of(48), plan_of({0, 1})).shard;
  EXPECT_EQ(measured.summary.at("n_eff").shape, (std::vector<std::int64_t>{2, 4}));
  for (const double n_eff : measured.summary.at("n_eff").values) EXPECT_TRUE(n_eff >= 1 && n_eff <= 48) << n_eff;
  const double nll = measured.summary.at("nll").values.at(0);
  EXPECT_TRUE(std::isfinite(nll) && nll > 0) << nll;
  EXPECT_FALSE(measured.summary.contains("gate"));
}

TEST(SweepChunk, GateOfAGatedModel) {
  const auto model = models::load_decoder(golden / "qwen3-gate-headwise");
  const auto measured = sweep_chunk(*model, chunk_of(48), plan_of({0})).shard;
  for (const double gate : measured.summary.at("gate").values) EXPECT_TRUE(gate > 0 && gate < 1) << gate;
}

TEST(SweepChunk, ALayerMeasuredAloneHasTheSameNumbers) {
  const auto model = models::load_decoder(golden / "llama");
  const auto all = sweep_chunk(*model, chunk_of(48), plan_of({0, 1})).shard;
  SweepPlan last = plan_of({1});
  last.nll = false;
  const auto alone = sweep_chunk(*model, chunk_of(48), last).shard;
  // Layer 0 uses fused attention in one sweep and the statistics in the other, so the results agree only within
  // float32.
  EXPECT_NEAR(alone.summary.at("n_eff").values.at(2), all.summary.at("n_eff").values.at(6),
              1e-4 * all.summary.at("n_eff").values.at(6));
  EXPECT_FALSE(alone.summary.contains("nll"));
}

TEST(SweepChunk, WithoutStatisticsTheLikelihoodIsTheSame) {
  const auto model = models::load_decoder(golden / "mistral-window");
  SweepPlan plan = plan_of({0, 1});
  const double with = sweep_chunk(*model, chunk_of(48), plan).shard.summary.at("nll").values.at(0);
  plan.statistics = false;
  const auto without = sweep_chunk(*model, chunk_of(48), plan).shard;
  EXPECT_NEAR(without.summary.at("nll").values.at(0), with, 1e-5 * with);
  EXPECT_EQ(without.summary.size(), 1u);
}

TEST(SweepChunk, PerQueryNumbersAgreeWithTheirSummary) {
  const auto model = models::load_decoder(golden / "qwen3");
  SweepPlan plan = plan_of({0});
  plan.per_query = true;
  const auto measured = sweep_chunk(*model, chunk_of(40), plan).shard;
  const auto& queries = measured.queries.at("kalman_gain").values;
  double total = 0;
  for (int t = 30; t < 40; ++t) total += queries.at(static_cast<std::size_t>(t));
  EXPECT_DOUBLE_EQ(measured.summary.at("kalman_gain").values.at(0), total / 10);
}

TEST(SweepChunk, TooShortIsRefused) {
  const auto model = models::load_decoder(golden / "llama");
  EXPECT_THAT([&] { sweep_chunk(*model, chunk_of(3), plan_of({0})); },
              ::testing::ThrowsMessage<InvalidArgument>(::testing::HasSubstr("at least 4 tokens")));
}

}  // namespace sweep_chunk_test
}  // namespace gainlens::sweep
