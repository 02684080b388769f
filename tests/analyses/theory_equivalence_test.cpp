
#include "analyses/gain_theory.h"
#include "analyses/synthetic_run.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::analyses {
namespace theory_equivalence_test {

using gainlens::testing::CellKey;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::HasSubstr;

using ByLength = std::vector<std::vector<GainMeans>>;
constexpr double variance = 0.5;  // variance of the prior

/// n_eff = 1, 3 and S = 0.5 give lambda* = 2, 4. K = 0.5 at the shortest length requires lambda = 2, which predicts K =
/// 2/3.
/// @param gains  [chunk] K at the second length
ByLength second_length(const std::vector<double>& gains) {
  ByLength values(2);
  for (const double gain : gains) {
    values[0].push_back({1, 0.5, 0.5});
    values[1].push_back({3, 0.5, gain});
  }
  return values;
}

Maybe<TheoryEquivalence> tested(const ByLength& values, double margin = 0.01) {
  std::vector<std::int64_t> tokens;
  for (std::size_t length = 0; length < values.size(); ++length) tokens.push_back(std::int64_t{16} << length);
  return test_theory(values, tokens, variance, margin);
}

TEST(TheoryEquivalence, ByHandWhereChunksNearlyAgree) {
  const auto exact = tested(second_length({2.0 / 3 - 1e-6, 2.0 / 3, 2.0 / 3 + 1e-6}));
  ASSERT_TRUE(exact) << exact.reason();
  EXPECT_EQ(exact->chunks, 3);
  ASSERT_EQ(exact->lengths.size(), 1u);
  EXPECT_EQ(exact->lengths[0].tokens, 32);
  EXPECT_NEAR(exact->lengths[0].error, 0, 1e-10);
  EXPECT_EQ(exact->lengths[0].log_ratio.flatness, Flatness::equivalent);
  EXPECT_NEAR(exact->lengths[0].constant_error, 0.5 / (2.0 / 3) - 1, 1e-10);
  const auto off = tested(second_length({0.64 - 1e-6, 0.64, 0.64 + 1e-6}));  // (2/3) / 0.64 - 1 = 4.17%
  EXPECT_NEAR(off->worst().error, 1.0 / 24, 1e-10);
  EXPECT_LE(*off->worst().log_ratio.exceeds_p, 0.001);
  EXPECT_EQ(tested(second_length({0.64 - 1e-6, 0.64, 0.64 + 1e-6}), 0.05)->worst().log_ratio.flatness,
            Flatness::equivalent);
  EXPECT_EQ(tested(second_length({0.64, 0.64, 0.64})).reason(), same_in_every_chunk);  // nothing shows an error
}

TEST(TheoryEquivalence, TheUncertaintyOfLambdaCounts) {
  // K at the second length is exact. K at the shortest length, which gives lambda, is uncertain.
  ByLength values = second_length({0.66, 0.66, 0.66, 0.66});
  const double gains[] = {0.46, 0.52, 0.49, 0.53};
  for (std::size_t chunk = 0; chunk < 4; ++chunk) values[0][chunk].gain = gains[chunk];
  const auto found = tested(values);
  ASSERT_TRUE(found) << found.reason();
  EXPECT_GT(found->worst().interval.high - found->worst().interval.low, 0.02);
  EXPECT_EQ(found->worst().log_ratio.flatness, Flatness::not_shown);
}

TEST(TheoryEquivalence, MoreChunksDoNotMakeItStricter) {
  // The same scatter with twice as many chunks: six chunks show at least what three chunks show.
  const std::vector<double> gains = {0.664, 0.668, 0.669};
  std::vector<double> twice = gains;
  twice.insert(twice.end(), gains.begin(), gains.end());
  EXPECT_EQ(tested(second_length(gains))->worst().log_ratio.flatness, Flatness::equivalent);
  EXPECT_LT(*tested(second_length(twice))->worst().log_ratio.p, *tested(second_length(gains))->worst().log_ratio.p);
}

TEST(TheoryEquivalence, LeftOutChunksByHand) {
  // At the second length, chunk 2 has K = 0.8 and the others 0.6. The errors of 2/3 are 1/9, 1/9 and 1/6. The errors of
  // the constant K(T_min) = 0.5 are 1/6, 1/6 and 3/8.
  const auto found = tested(second_length({0.6, 0.6, 0.8}));
  EXPECT_NEAR(found->left_out.relative, (2.0 / 9 + 1.0 / 6) / 3, 1e-12);
  EXPECT_NEAR(found->left_out.constant, (2.0 / 6 + 0.375) / 3, 1e-12);
  EXPECT_NEAR(*found->left_out.skill, 1 - (2.0 / 9 + 1.0 / 6) / (2.0 / 6 + 0.375), 1e-12);
}

TEST(TheoryEquivalence, AGainThatNeverChangesHasNoSkill) {
  ByLength values(2, std::vector<GainMeans>(4, {1, 0.5, 0.5}));
  EXPECT_EQ(tested(values).reason(), same_in_every_chunk);
  for (std::size_t chunk = 0; chunk < 4; ++chunk) values[1][chunk].n_eff += 1e-4 * static_cast<double>(chunk);
  const auto found = tested(values);
  ASSERT_TRUE(found) << found.reason();
  EXPECT_EQ(found->worst().log_ratio.flatness, Flatness::equivalent);
  EXPECT_THAT(found->left_out.skill.reason(), HasSubstr("does not change with length"));
}

TEST(TheoryEquivalence, RefusalsSayWhatIsMissing) {
  EXPECT_EQ(tested(second_length({0.6})).reason(),
            "not testable: 1 chunk is complete at every length; the error on unseen text needs at least 3");
  EXPECT_THAT(tested(second_length({0.6, 0.6})).reason(), HasSubstr("not testable: 2 chunks are complete"));
  EXPECT_EQ(tested({{{1, 0.5, 0.5}, {1, 0.5, 0.5}, {1, 0.5, 0.5}}}).reason(),
            "only one length has a complete chunk; a prediction needs a second one");
  EXPECT_THAT(tested(second_length({0, 0, 0})).reason(), HasSubstr("a relative error needs K > 0"));
  ByLength sure = second_length({0.6, 0.6, 0.6});
  for (GainMeans& chunk : sure[0]) chunk.gain = 1;
  EXPECT_THAT(tested(sure).reason(), HasSubstr("a lambda needs 0 < K < 1"));
}

TEST(TheoryEquivalence, OfARunTakesTheChunksThatEveryLengthHas) {
  const TemporaryFolder folder;
  SyntheticRun run;
  run.lengths = {16, 32};
  run.samples = 4;
  run.head_dim = 2;
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/n_eff") return key.length == 16 ? 1.0 : 3.0;
    if (key.name == "summary/residual") return 0.5;
    if (key.name == "summary/kalman_gain")
      return key.length == 16 ? 0.5 : 0.66 + 0.004 * static_cast<double>(key.sample);
    return std::nullopt;
  };
  run.missing = {{32, 1}};
  const auto reader = write_run(folder.path() / "run", run);
  const auto found = theory_equivalence(reader, {.theory_margin = 0.05});
  ASSERT_TRUE(found) << found.reason();
  EXPECT_EQ(found->chunks, 3);
  EXPECT_EQ(found->margin, 0.05);
  const OrderedJson json = to_json(*found);
  EXPECT_EQ(json["lengths"][0]["tokens"], 32);
  EXPECT_EQ(json["lengths"][0]["beyond_margin_p_holm"], json["lengths"][0]["beyond_margin_p"]);
  run.missing = {{32, 1}, {32, 2}};
  EXPECT_THAT(theory_equivalence(write_run(folder.path() / "two", run), {}).reason(),
              HasSubstr("2 chunks are complete at every length"));
}

}  // namespace theory_equivalence_test
}  // namespace gainlens::analyses
