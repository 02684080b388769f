#include "analyses/neighbours.h"

#include "analyses/synthetic_run.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace gainlens::analyses {
namespace neighbours_test {

using gainlens::testing::CellKey;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::HasSubstr;

constexpr std::array<std::int64_t, 4> four = {0, 1, 2, 3};

/// n_eff of chunk c is 2 + values[c] at every head.
SyntheticRun run_of(std::vector<double> values) {
  SyntheticRun run;
  run.lengths = {64};
  run.samples = std::ssize(values);
  run.layers = run.heads = run.kv_heads = 1;
  run.value = [values](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/n_eff") return 2 + values[static_cast<std::size_t>(key.sample)];
    return std::nullopt;
  };
  return run;
}

const NeighbourCorrelation& row_of(const Neighbours& neighbours, std::string_view quantity) {
  for (const NeighbourCorrelation& row : neighbours.rows) {
    if (row.quantity == quantity) return row;
  }
  throw std::runtime_error("no row");
}

TEST(LagOneCorrelation, ByHand) {
  // centred -1.5 -0.5 0.5 1.5: products 0.75 - 0.25 + 0.75, squares 5
  EXPECT_NEAR(*lag_one_correlation(std::array{1.0, 2.0, 3.0, 4.0}, four), 1.25 / 5, 1e-12);
  EXPECT_NEAR(*lag_one_correlation(std::array{1.0, -1.0, 1.0, -1.0}, four), -0.75, 1e-12);
}

TEST(LagOneCorrelation, ChunksAroundAMissingOneAreNoNeighbours) {
  constexpr std::array<std::int64_t, 4> gap = {0, 1, 3, 4};
  EXPECT_NEAR(*lag_one_correlation(std::array{1.0, 2.0, 3.0, 4.0}, gap), 1.5 / 5, 1e-12);
  EXPECT_THAT(lag_one_correlation(std::array{1.0, 2.0, 3.0}, std::array<std::int64_t, 3>{0, 2, 4}).reason(),
              HasSubstr("no two"));
}

TEST(LagOneCorrelation, TwoChunksAndEqualOnesHaveAReason) {
  EXPECT_EQ(lag_one_correlation(std::array{1.0}, std::array<std::int64_t, 1>{0}).reason(),
            "1 chunk; a correlation of neighbours needs at least 3");
  EXPECT_THAT(lag_one_correlation(std::array{1.0, 2.0}, std::array<std::int64_t, 2>{0, 1}).reason(),
              HasSubstr("2 chunks"));
  EXPECT_THAT(lag_one_correlation(std::array{1.0, 1.0, 1.0, 1.0}, four).reason(), HasSubstr("all equal"));
  // Differ by rounding alone.
  EXPECT_THAT(lag_one_correlation(std::array{0.1 + 0.2, 0.3, 0.3, 0.1 + 0.2}, four).reason(), HasSubstr("all equal"));
}

TEST(Neighbours, TheFindingNamesTheCureAndNoIntervalThatAllowsForThem) {
  const TemporaryFolder folder;
  const Neighbours found = neighbours(write_run(folder.path() / "run", run_of({1, 2, 3, 4, 5, 6, 7, 8})));
  const NeighbourCorrelation& row = row_of(found, "n_eff");
  EXPECT_NEAR(*row.correlation, 0.625, 1e-12);  // correlation of a ramp: 1 - 3/n
  EXPECT_THAT(found.finding, HasSubstr("the variance of a mean is up to 1.86 times as large"));
  EXPECT_THAT(found.finding, HasSubstr("correlations of neighbours is +0.62 (n_eff at 64 tokens); by chance alone each "
                                       "would lie within about 0.71 of -0.12. The intervals do not allow for it. If "
                                       "neighbours are alike, they are too short. --spread lays the chunks apart"));
  EXPECT_FALSE(to_json(found)["rows"][0].contains("interval_allowing_for_it"));
}

TEST(Neighbours, JsonHasAReasonWhereThereIsNoNumber) {
  const TemporaryFolder folder;
  SyntheticRun run = run_of({1});
  run.gated = false;
  const OrderedJson json = to_json(neighbours(write_run(folder.path() / "run", run)));
  EXPECT_EQ(json["rows"].size(), 3u);  // K, ln lambda_obs and n_eff; no gate
  EXPECT_TRUE(json["rows"][0]["lag_one_correlation"].is_null());
  EXPECT_THAT(json["rows"][0]["lag_one_correlation_reason"], HasSubstr("needs at least 3"));
}

}  // namespace neighbours_test
}  // namespace gainlens::analyses
