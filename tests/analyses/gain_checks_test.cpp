#include "analyses/gain_checks.h"

#include "analyses/gain_model.h"
#include "analyses/synthetic_run.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::analyses {
namespace {

using gainlens::testing::CellKey;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::HasSubstr;

/// d = 2, so sigma0^2 = 0.5; S = 0.5 and n_eff = 1, 3 give lambda* = 2, 4 at 16 and 32 tokens. K(16) = 0.5 asks for
/// lambda = 2, which predicts K(32) = 2/3; `gain(chunk, head)` is what is measured there.
SyntheticRun theory_run(std::int64_t samples, const std::function<double(std::int64_t, std::int64_t)>& gain) {
  SyntheticRun run;
  run.lengths = {16, 32};
  run.samples = samples;
  run.layers = 1;
  run.heads = run.kv_heads = 2;
  run.head_dim = 2;
  run.value = [gain](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/n_eff") return key.length == 16 ? 1.0 : 3.0;
    if (key.name == "summary/residual") return 0.5;
    if (key.name == "summary/kalman_gain") return key.length == 16 ? 0.5 : gain(key.sample, key.head);
    return std::nullopt;
  };
  return run;
}

TEST(GainModel, ErrorsByHand) {
  const GainMeans shortest{1, 0.5, 0.5};
  EXPECT_DOUBLE_EQ(aggregated_precision(shortest, 0.5), 2);
  EXPECT_DOUBLE_EQ(*fitted_prior_precision(shortest, 0.5), 2);
  EXPECT_DOUBLE_EQ(predicted_gain({3, 0.5, 0}, 0.5, 2), 4.0 / 6);
  const auto errors = gain_errors(shortest, {{3, 0.5, 0.6}, {7, 0.5, 0.8}}, 0.5, 0.5);
  EXPECT_NEAR(errors->max_relative, 1.0 / 9, 1e-12);
  EXPECT_NEAR(errors->max_constant, 0.375, 1e-12);
  EXPECT_NEAR(*errors->skill(), 1 - (1.0 / 9) / (1.0 / 6 + 0.375), 1e-12);
  EXPECT_THAT(gain_errors({1, 0.5, 1}, {shortest}, 1, 0.5).reason(), HasSubstr("0 < K < 1"));
  EXPECT_THAT(gain_errors(shortest, {{3, 0.5, 0}}, 0.5, 0.5).reason(), HasSubstr("K is 0"));
  EXPECT_THAT(gain_errors(shortest, {shortest}, 0.5, 0.5)->skill().reason(), HasSubstr("does not change"));
}

TEST(GainModel, TheConstantIsThatOfTheJudgedText) {
  const GainMeans shortest{1, 0.5, 0.5};
  const auto errors = gain_errors(shortest, {{3, 0.5, 0.8}}, 0.6, 0.5);  // lambda from K = 0.5, the constant 0.6
  EXPECT_NEAR(errors->max_relative, 1.0 / 6, 1e-12);                     // (0.8 - 2/3) / 0.8
  EXPECT_NEAR(errors->max_constant, 0.25, 1e-12);
  EXPECT_THAT(gain_errors(shortest, {shortest}, std::nan(""), 0.5).reason(), HasSubstr("no finite K"));
}

TEST(CellErrors, OneLengthPredictsNothing) {
  const TemporaryFolder folder;
  SyntheticRun run = theory_run(4, [](std::int64_t, std::int64_t) { return 0.6; });
  run.lengths = {16};
  EXPECT_EQ(cell_errors(write_run(folder.path() / "run", run), {}).reason(),
            "one length with a complete chunk; a prediction needs a second");
}

TEST(CellErrors, EachHeadHasItsOwn) {
  const TemporaryFolder folder;
  const auto reader = write_run(
      folder.path() / "run", theory_run(1, [](std::int64_t, std::int64_t head) { return head == 0 ? 2.0 / 3 : 0.8; }));
  const auto errors = cell_errors(reader, {});
  ASSERT_TRUE(errors) << errors.reason();
  ASSERT_EQ(errors->cells.size(), 2u);
  EXPECT_NEAR(errors->cells[0].max_relative_error, 0, 1e-12);
  EXPECT_NEAR(errors->worst.max_relative_error, 1.0 / 6, 1e-12);
  EXPECT_EQ(errors->worst.head, 1);
  EXPECT_NEAR(errors->median_error, 1.0 / 12, 1e-12);
  EXPECT_EQ(errors->better_than_constant, 2u);
}

TEST(CellErrors, HeadWithAGainOfOneIsLeftOut) {
  const TemporaryFolder folder;
  SyntheticRun run = theory_run(1, [](std::int64_t, std::int64_t) { return 0.6; });
  const auto planted_value = run.value;
  run.value = [planted_value](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/kalman_gain" && key.head == 1) return 1.0;
    return planted_value(key);
  };
  const auto errors = cell_errors(write_run(folder.path() / "run", run), {});
  EXPECT_EQ(errors->left_out, 1u);
  EXPECT_EQ(errors->cells.size(), 1u);
}

}  // namespace
}  // namespace gainlens::analyses
