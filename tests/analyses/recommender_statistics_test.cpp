#include "analyses/gain_regression.h"
#include "analyses/means_of_runs.h"
#include "analyses/pooled_data_sets.h"
#include "analyses/recommender_comparison.h"
#include "analyses/seed_comparison.h"
#include "core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

namespace gainlens::analyses {
namespace recommender_statistics_test {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::means_of_runs;
using ::testing::ThrowsMessage;

TEST(PairedUnits, BadInputIsNamed) {
  const std::vector<double> fine = {1, 2, 3, 4}, wrong = {1, 2, 0.5f, 4};
  EXPECT_THAT([&] { paired_users({RankingMetric::Kind::reciprocal_rank}, fine, wrong, 2, 2); },
              ThrowsMessage<InvalidArgument>(HasSubstr("0.5 for user 0 in run 1")));
  EXPECT_THAT([&] { paired_users({RankingMetric::Kind::reciprocal_rank}, fine, fine, 2, 3); },
              ThrowsMessage<InvalidArgument>(HasSubstr("2 runs of 3 users need 6 each")));
}

TEST(PairedUnits, MeansBySeed) {
  const std::vector<double> ranks = {1, 2, 4, 4};
  const PairedUnits users = paired_users({RankingMetric::Kind::reciprocal_rank}, ranks, ranks, 2, 2);
  EXPECT_THAT(seed_means(users).baseline, ElementsAre(0.75, 0.25));
}

TEST(SignTests, FivePairsCannotReachFivePercent) {
  const std::array differences = {1.0, 2.0, 3.0, 4.0, 5.0};
  for (const SignedTest& test : {sign_test(differences), signed_rank_test(differences), flip_test(differences, {})}) {
    EXPECT_EQ(test.arrangements, 32);
    EXPECT_EQ(test.min_p, 0.0625);
    ASSERT_FALSE(test.p);
    EXPECT_THAT(test.p.reason(), HasSubstr("with 32 patterns of signs the smallest possible p is 0.062"));
  }
}

TEST(SignTests, SixPairsOfOneSignReachTheLeastP) {
  const std::array differences = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0};
  for (const SignedTest& test : {sign_test(differences), signed_rank_test(differences), flip_test(differences, {})}) {
    EXPECT_EQ(test.min_p, 0.03125);  // 2 of 64 patterns
    EXPECT_THAT(*test.p, DoubleEq(0.03125));
  }
}

TEST(SignTests, ZerosHaveNoSign) {
  const std::array differences = {0.0, 1.0, 0.0};
  for (const SignedTest& test : {sign_test(differences), signed_rank_test(differences), flip_test(differences, {})}) {
    EXPECT_EQ(test.pairs, 1u);
    EXPECT_EQ(test.zeros, 2u);
    EXPECT_FALSE(test.p);
  }
  const SignedTest nothing = flip_test(std::array{0.0, 0.0}, {});
  EXPECT_EQ(nothing.arrangements, 1);
  EXPECT_THAT(nothing.p.reason(), HasSubstr("with 1 pattern of signs"));
}

TEST(SignTests, DrawnFlipsAgreeWithAllOfThem) {
  std::vector<double> terms;
  for (int i = 0; i < 30; ++i) terms.push_back(i % 3 == 0 ? -0.9 : 1.0);
  const SignedTest exact = flip_test(terms, {});
  EXPECT_TRUE(exact.exact);
  terms.push_back(1e-6);  // hardly matters, but there are now too many patterns to try
  const SignedTest drawn = flip_test(terms, {.permutations = 40'000, .seed = 5});
  EXPECT_FALSE(drawn.exact);
  EXPECT_EQ(drawn.resamples, 40'000);
  EXPECT_EQ(drawn.seed, 5u);
  EXPECT_EQ(drawn.min_p, 1 / 40'001.0);
  EXPECT_NEAR(*drawn.p, *exact.p, 0.01);
}

TEST(SeedComparison, OneSeedHasNoTest) {
  const SeedComparison found = compare_seeds(means_of_runs({0.5}, {0.6}));
  EXPECT_NEAR(found.difference, 0.1, 1e-15);
  EXPECT_NEAR(*found.relative, 0.2, 1e-15);
  EXPECT_FALSE(found.naive_p || found.interval || found.baseline.deviation || found.correlation || found.signs.p);
  EXPECT_THAT(to_json(found)["paired_t_reason"].get<std::string>(), HasSubstr("at least 2 seeds"));
}

TEST(SeedComparison, EqualDifferencesHaveNoSpread) {
  const SeedComparison found = compare_seeds(means_of_runs({0.0, 1.0}, {0.5, 1.5}));
  EXPECT_THAT(found.t.reason(), HasSubstr("the same with every seed"));
  // Two arms without training: six copies of one difference are not six observations.
  const SeedComparison copies = compare_seeds(means_of_runs(std::vector<double>(6, 0.25), std::vector<double>(6, 0.5)));
  for (const SignedTest* const test : {&copies.signs, &copies.ranks, &copies.flips})
    EXPECT_THAT(test->p.reason(), HasSubstr("the same with every seed"));
  const SeedComparison zero = compare_seeds(means_of_runs({0.0, 0.0}, {0.5, 1.5}));
  EXPECT_THAT(zero.relative.reason(), HasSubstr("baseline is 0"));
}

/// Grubbs' test by hand: 10 lies 9 above the mean of 0, 1, 2, whose deviation is 1.
TEST(SeedComparison, ASeedFarFromTheOthersIsNamed) {
  const SeedComparison found = compare_seeds(means_of_runs({0, 0, 0, 0}, {0, 10, 1, 2}));
  ASSERT_TRUE(found.farthest) << found.farthest.reason();
  EXPECT_EQ(found.farthest->place, 1u);
  const double t = 9 / std::sqrt(1 + 1.0 / 3);
  EXPECT_NEAR(found.farthest->p,
              4 * 2 *
                  (1 -
                   [&] {  // Student's t with 2 degrees of freedom: 1/2 + t / (2 sqrt(2 + t^2))
                     return 0.5 + t / (2 * std::sqrt(2 + t * t));
                   }()),
              1e-12);
  EXPECT_FALSE(found.has_far_seed());  // .064
  EXPECT_TRUE(compare_seeds(means_of_runs({0, 0, 0, 0}, {0, 20, 1, 2})).has_far_seed());
  EXPECT_EQ(to_json(found)["farthest_seed"]["place"], 1);
  EXPECT_THAT(compare_seeds(means_of_runs({0, 0}, {0, 1})).farthest.reason(), HasSubstr("at least 3 values"));
  EXPECT_THAT(compare_seeds(means_of_runs({0, 0, 0}, {1, 1, 2})).farthest.reason(), HasSubstr("but one are alike"));
}

/// Two users and two runs, candidate - baseline = {{1, 3}, {2, 6}}.
PairedUnits two_by_two() {
  return {2, 2, {1, 1, 1, 1}, {2, 4, 3, 7}};
}

TEST(Crossed, TwoSeedsAndTwoUsersByHand) {
  const PairedUnits users = two_by_two();
  const auto found = crossed_gain(users, std::array{all_units(users)}, GainScale::difference);
  ASSERT_TRUE(found) << found.reason();
  EXPECT_DOUBLE_EQ(found->value, 3);
  EXPECT_DOUBLE_EQ(*found->seed_variance, 1);      // means 2 and 4: variance 2, over 2 seeds
  EXPECT_DOUBLE_EQ(found->unit_variance, 2.25);    // means 1.5 and 4.5: variance 4.5, over 2 users
  EXPECT_DOUBLE_EQ(*found->noise_variance, 0.25);  // remainders of 0.5: mean square 1, over 4 values
  EXPECT_DOUBLE_EQ(*found->error * *found->error, 3);
  EXPECT_DOUBLE_EQ(*found->degrees_of_freedom, 9 / (1 + 2.25 * 2.25 + 0.25 * 0.25));
}

TEST(Crossed, UsersThatErrTogetherAreOneUnit) {
  const PairedUnits users{2, 4, std::vector<double>(8, 0), {1, 1, 4, 2, 3, 3, 6, 4}};
  const std::array<std::size_t, 4> unit = {7, 7, 2, 5};
  const auto found = crossed_gain(users, std::array{all_units(users)}, GainScale::difference, unit);
  ASSERT_TRUE(found) << found.reason();
  EXPECT_EQ(found->units, 3u);
  EXPECT_DOUBLE_EQ(found->effective_units, 16.0 / 6);
  // The mean is 3. It is 4 without the pair, 7/3 without the third user and 3 without the last: 2/3 (1 + 4/9).
  EXPECT_DOUBLE_EQ(found->unit_variance, 26.0 / 27);
  EXPECT_NEAR(*found->noise_variance, 0, 1e-15);
}

/// A third of the users have one target item. Counted alike, the items would seem to say more than they do.
TEST(Crossed, AnItemWithManyUsersCountsAsTheJackknifeDoes) {
  PairedUnits users{3, 12, std::vector<double>(36, 0), {}};
  std::vector<std::size_t> item;
  for (std::size_t user = 0; user < 12; ++user) item.push_back(user < 4 ? 0 : user);
  for (std::size_t seed = 0; seed < 3; ++seed) {
    for (std::size_t user = 0; user < 12; ++user)
      users.candidate.push_back(static_cast<double>((7 * user + 5 * seed * user + seed) % 11));
  }
  const auto found = crossed_gain(users, std::array{all_units(users)}, GainScale::difference, item);
  ASSERT_TRUE(found) << found.reason();
  EXPECT_EQ(found->units, 9u);
  EXPECT_DOUBLE_EQ(found->effective_units, 144.0 / 24);
  // By leaving out every item in turn.
  std::vector<double> without;
  for (std::size_t left_out = 0; left_out < 12; ++left_out) {
    if (left_out > 0 && left_out < 4) continue;
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < 36; ++i) {
      if (item[i % 12] == left_out) continue;
      sum += users.candidate[i];
      ++count;
    }
    without.push_back(sum / count);
  }
  EXPECT_NEAR(std::sqrt(found->unit_variance), std::sqrt(8.0 / 9) * std::sqrt([&] {
                                                 double squares = 0;
                                                 for (const double value : without)
                                                   squares += std::pow(value - found->value, 2);
                                                 return squares;
                                               }()),
              1e-12);
}

/// Nine users of four items, one of which has six of them, are as good as two: nothing is stated.
TEST(Crossed, FewEffectiveUnitsHaveARangeWithoutALevel) {
  PairedUnits users{3, 9, std::vector<double>(27, 0), {}};
  for (std::size_t i = 0; i < 27; ++i)
    users.candidate.push_back(static_cast<double>(i % 9) + 0.3 * static_cast<double>((5 * i) % 7));
  const std::array<std::size_t, 9> item = {0, 0, 0, 0, 0, 0, 1, 2, 3};
  const auto found = crossed_gain(users, std::array{all_units(users)}, GainScale::difference, item);
  ASSERT_TRUE(found) << found.reason();
  EXPECT_FALSE(found->interval || found->p || found->over_units);
  EXPECT_TRUE(found->range);
  const std::string reason =
      "a 95% interval and a p need 5 users of equal weight, with those that err together as one; these say as much as "
      "2.08";
  EXPECT_EQ(stated_p(found).reason(), reason);
  const OrderedJson json = to_json(*found);
  EXPECT_EQ(json["p_reason"], reason);
  EXPECT_NEAR(json["effective_units"].get<double>(), 81.0 / 39, 1e-12);
  // The same users, each an item of its own.
  EXPECT_TRUE(crossed_gain(users, std::array{all_units(users)}, GainScale::difference)->p);
  // One seed has nothing to show over so few.
  const PairedUnits once{1, 4, {0, 0, 0, 0}, {1, 2, 6, 3}};
  const auto alone = crossed_gain(once, std::array{all_units(once)}, GainScale::difference);
  ASSERT_TRUE(alone) << alone.reason();
  EXPECT_FALSE(alone->over_units);
  EXPECT_THAT(shown_ends(alone).reason(), HasSubstr("these say as much as 4"));
}

TEST(Crossed, WhatCannotBeEstimatedHasAReason) {
  const PairedUnits equal{2, 2, {0, 0, 0, 0}, {1, 1, 1, 1}}, equal_once{1, 2, {0, 0}, {1, 1}};
  const auto reason = [](const PairedUnits& users, GainScale scale) {
    return crossed_gain(users, std::array{all_units(users)}, scale).reason();
  };
  EXPECT_THAT(reason(equal, GainScale::difference), HasSubstr("the same in every run"));
  EXPECT_THAT(reason(equal_once, GainScale::difference), HasSubstr("the same for every user"));
  EXPECT_THAT(reason(equal, GainScale::log_ratio), HasSubstr("a mean is 0"));
  EXPECT_THAT(crossed_gain(equal, std::array{SignedGroup{{0}, 1}}, GainScale::difference).reason(),
              HasSubstr("at least 2 users"));
}

TEST(Crossed, TwoSeedsGiveARangeWithoutALevel) {
  const PairedUnits users = two_by_two();
  const auto found = crossed_gain(users, std::array{all_units(users)}, GainScale::difference);
  ASSERT_TRUE(found) << found.reason();
  EXPECT_FALSE(found->interval || found->p || found->over_units);
  ASSERT_TRUE(found->range);
  EXPECT_NEAR(found->range->low, 3 - 12.7062047, 1e-6);  // that of the seeds alone, t(0.975, 1), is the wider one
  EXPECT_NEAR(found->range->low + found->range->high, 6, 1e-12);
  const OrderedJson json = to_json(*found);
  EXPECT_TRUE(json["p"].is_null() && json["interval_95"].is_null());
  // With two users a third seed alone would give no interval either.
  for (const char* const reason : {"p_reason", "interval_95_reason"})
    EXPECT_EQ(json[reason],
              "a 95% interval and a p need 5 users of equal weight, with those that err together as one; these say as "
              "much as 2; a third seed is needed too");
  EXPECT_EQ(json["range"][0], found->range->low);
  EXPECT_FALSE(json.contains("interval_95_over_users_alone"));
  EXPECT_EQ(stated_p(found).reason(), json["p_reason"]);
  EXPECT_EQ(stated_interval(found).reason(), json["p_reason"]);
}

/// Two seeds whose users gain alike: the error rests on one degree of freedom, and the range is there nevertheless.
TEST(Crossed, TwoSeedsWithUsersAlikeHaveARange) {
  const PairedUnits users{2, 3, {0, 0, 0, 0, 0, 0}, {1, 1, 1, 2, 2, 2.0001f}};
  const auto found = crossed_gain(users, std::array{all_units(users)}, GainScale::difference);
  ASSERT_TRUE(found) << found.reason();
  EXPECT_EQ(*found->degrees_of_freedom, 1);
  EXPECT_NEAR(found->range->high - found->range->low, 2 * 12.7062047 * 0.5, 0.01);
}

TEST(Crossed, OneSeedHasAnIntervalOverUsersAlone) {
  const PairedUnits users{1, 5, {0, 0, 0, 0, 0}, {1, 2, 6, 3, 3}};
  const auto found = crossed_gain(users, std::array{all_units(users)}, GainScale::difference);
  ASSERT_TRUE(found) << found.reason();
  EXPECT_DOUBLE_EQ(found->value, 3);
  EXPECT_DOUBLE_EQ(found->unit_variance, 0.7);  // squares of 14 over 4, over 5 users
  EXPECT_FALSE(found->interval || found->p || found->range || found->seed_variance || found->error);
  EXPECT_NEAR(found->over_units->high, 3 + 2.77644511 * std::sqrt(0.7), 1e-7);  // t(0.975, 4)
  const OrderedJson json = to_json(*found);
  EXPECT_EQ(json["p_reason"], "an error over seeds needs at least 3 seeds; there is 1");
  EXPECT_EQ(json["interval_95_over_users_alone"][1], found->over_units->high);
  EXPECT_TRUE(json["interval_95"].is_null() && !json.contains("range") && !json.contains("p_note"));
}

/// The interval is never shorter than that of the seeds alone, and p never smaller.
TEST(Crossed, OtherUsersNeverMakeTheEvidenceStronger) {
  const PairedUnits users{3, 5, std::vector<double>(15, 0), {2, 1, 3, 2, 1, 3, 2, 5, 3, 2, 4, 2, 6, 3, 3}};
  const auto found = crossed_gain(users, std::array{all_units(users)}, GainScale::difference);
  ASSERT_TRUE(found) << found.reason();
  const SeedComparison alone = compare_seeds(seed_means(users));
  EXPECT_GE(*found->p, *alone.naive_p * (1 - 1e-12));
  EXPECT_LE(found->interval->low, alone.interval->low + 1e-12);
  // Here the spread over seeds is large beside that over users, whose error has more degrees of freedom.
  const PairedUnits many = [] {
    PairedUnits runs{3, 400, std::vector<double>(1200, 0), {}};
    for (std::size_t i = 0; i < 1200; ++i)
      runs.candidate.push_back(static_cast<float>(i / 400) + 1 + static_cast<float>(i % 2) * 20);
    return runs;
  }();
  const auto wide = crossed_gain(many, std::array{all_units(many)}, GainScale::difference);
  const SeedComparison seeds = compare_seeds(seed_means(many));
  EXPECT_DOUBLE_EQ(*wide->p, *seeds.naive_p);
  EXPECT_NEAR(wide->interval->low, seeds.interval->low, 1e-9);
  EXPECT_GT(*wide->degrees_of_freedom, 2.5);
}

TEST(Crossed, BelowFiveSeedsTheFormOfTheirEffectsIsNoted) {
  EXPECT_EQ(few_seeds_note(1), "");
  EXPECT_EQ(few_seeds_note(4),
            "with fewer than 5 seeds, a p below .01 cannot be relied on, and one of .05 takes effects of seeds as "
            "bell-shaped or uniform: if each training ends in one of two ways, 4 seeds give it in 12.5%");
  EXPECT_THAT(few_seeds_note(3), HasSubstr("3 seeds give it in 25%"));
  EXPECT_EQ(few_seeds_note(5), "");
  const PairedUnits users{3, 5, std::vector<double>(15, 0), {2, 1, 3, 2, 1, 3, 2, 5, 3, 2, 4, 2, 6, 3, 3}};
  const OrderedJson json = to_json(*crossed_gain(users, std::array{all_units(users)}, GainScale::difference));
  EXPECT_EQ(json["p_note"], few_seeds_note(3));
  EXPECT_EQ(to_json(compare_seeds(seed_means(users)))["p_note"], few_seeds_note(3));
}

TEST(Bootstrap, SeedAndCountAreStoredAndFixEverything) {
  const PairedUnits users = two_by_two();
  const auto draw = [&](std::uint64_t seed) { return bootstrap_gain(users, std::array{all_units(users)}, {99, seed}); };
  const auto first = draw(4).difference, again = draw(4).difference, other = draw(5).difference;
  EXPECT_EQ(first->error, again->error);
  EXPECT_NE(first->error, other->error);
  EXPECT_EQ(first->resamples, 99);
  EXPECT_EQ(first->seed, 4u);
  EXPECT_DOUBLE_EQ(first->p, 0.02);  // every difference is positive: 2 x 1 / 100
  EXPECT_FALSE(first->is_95);
  EXPECT_TRUE(to_json(*first).contains("range_without_level"));
  EXPECT_THAT(
      [&] {
        bootstrap_gain(users, std::array{all_units(users)}, {38, 0});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("resamples: 38; 39 to 1000000 are allowed")));
}

TEST(Bootstrap, AResampleWithoutAHitHasNoRatio) {
  const PairedUnits users{2, 2, {1, 0, 1, 0}, {1, 0, 1, 1}};
  const BootstrapGains found = bootstrap_gain(users, std::array{all_units(users)}, {199, 0});
  EXPECT_TRUE(found.difference);
  EXPECT_THAT(found.log_ratio.reason(), HasSubstr("no ratio"));
}

/// 6 runs of 40 users in two strata with equal baselines. The first gains 0.3 on average, the second nothing.
PairedUnits two_strata() {
  PairedUnits users{6, 40, {}, {}};
  for (std::size_t seed = 0; seed < 6; ++seed) {
    for (std::size_t user = 0; user < 40; ++user) {
      const float wobble = static_cast<float>((seed * 4 + user * user) % 7) * 0.02f - 0.06f;
      users.baseline.push_back(0.5f);
      users.candidate.push_back(0.5f + wobble + (user < 20 ? 0.3f : 0.0f));
    }
  }
  return users;
}

TEST(StratumInteraction, TheContrastIsTheDifferenceOfGains) {
  const PairedUnits users = two_strata();
  std::vector<std::size_t> stratum(40, 2);  // stratum 1 is empty
  std::fill(stratum.begin(), stratum.begin() + 20, 0);
  const StratumInteraction found = stratum_interaction(users, stratum, 3, 0, 2, {}, {199, 1});
  ASSERT_EQ(found.strata.size(), 3u);
  EXPECT_THAT(found.strata[1].baseline.reason(), HasSubstr("no user"));
  const StratumGain &rare = found.strata[0], &popular = found.strata[2];
  EXPECT_NEAR(found.difference->value, rare.difference->value - popular.difference->value, 1e-12);
  EXPECT_NEAR(found.difference->value, 0.3, 0.02);
  EXPECT_NEAR(found.log_ratio->value, rare.log_ratio->value - popular.log_ratio->value, 1e-12);
  EXPECT_LT(*found.difference->p, 0.001);
  EXPECT_DOUBLE_EQ(found.bootstrap.difference->value, found.difference->value);
  EXPECT_GT(found.bootstrap.difference->range.low, 0.2);
  EXPECT_DOUBLE_EQ(*rare.naive_holm, 2 * *rare.naive_p);  // two strata with users
  EXPECT_EQ(to_json(found)["interaction"]["first"], 0);
}

TEST(GainRegression, WhatCannotBeFittedHasAReason) {
  const PairedUnits users = two_strata();
  const std::vector<std::int64_t> equal(40, 3);
  std::vector<std::int64_t> counts(40);
  std::iota(counts.begin(), counts.end(), 1);
  std::vector<std::size_t> target(40);
  std::iota(target.begin(), target.end(), std::size_t{0});
  EXPECT_THAT(gain_regression(users, equal, counts, target).reason(), HasSubstr("frequency"));
  EXPECT_THAT(gain_regression(users, counts, equal, target).reason(), HasSubstr("history length"));
  std::vector<std::int64_t> one_more = counts;
  for (std::int64_t& count : one_more) ++count;
  EXPECT_THAT(gain_regression(users, counts, one_more, target).reason(), HasSubstr("proportional"));
  EXPECT_THAT(gain_regression(users, counts, counts, std::vector<std::size_t>(40, 0)).reason(),
              HasSubstr("2 target items"));
}

DataSetGain data_set(const std::string& name, std::vector<double> differences) {
  std::vector<std::uint64_t> seeds(differences.size());
  std::iota(seeds.begin(), seeds.end(), std::uint64_t{0});
  const double p = *compare_seeds(means_of_runs(std::vector<double>(differences.size(), 0.0), differences)).naive_p;
  const auto none = Maybe<Interval>::none("an interval is stated");
  const CrossedEstimate gain{
      mean(differences), differences.size(), 9, 9, 1.0, 1, 1.0, 1.0, 5.0, Interval{-1, 1}, 0.04, none, none};
  return {name, {seeds, std::move(differences)}, p, gain};
}

TEST(PooledDataSets, EveryPartIsThere) {
  const std::array sets = {data_set("a", {1, 2, 3, 2, 1, 2}), data_set("b", {1, -2, 3, 1, 1, 2})};
  const PooledDataSets pooled = pool_data_sets(sets);
  EXPECT_EQ(pooled.flips.pairs, 6u);
  EXPECT_TRUE(pooled.flips.p);
  EXPECT_THAT(*pooled.crossed_holm[1], DoubleEq(0.08));
  EXPECT_DOUBLE_EQ(pooled.crossed_stouffer->z, stouffer(std::array{0.04, 0.04}, std::array{1.0, 1.0}).z);
  const OrderedJson json = to_json(pooled);
  for (const char* key : {"fisher_naive", "stouffer_naive", "random_effects_log_ratio", "joint_sign_flips"})
    EXPECT_TRUE(json[key].is_object()) << key;
  EXPECT_TRUE(json["paired_t_naive_p_holm"].contains("b"));
}

TEST(PooledDataSets, OneDataSetHasNoSpreadAndAMissingPIsNamed) {
  DataSetGain alone = data_set("a", {1, 2, 3});
  EXPECT_THAT(pool_data_sets(std::array{alone}).relative_gain.reason(), HasSubstr("at least 2 data sets"));
  alone.naive_p = Measured::none("only one seed");
  const PooledDataSets pooled = pool_data_sets(std::array{alone, data_set("b", {1, 2, 4})});
  EXPECT_THAT(pooled.naive_fisher.reason(), HasSubstr("a data set has no p: only one seed"));
  EXPECT_THAT(pooled.flips.p.reason(), HasSubstr("with 8 patterns of signs"));
  EXPECT_EQ(to_json(pooled)["p_note"], few_seeds_note(3));
}

TEST(PooledDataSets, SignsCancelInStoufferButNotInFisher) {
  const std::array p = {0.001, 0.001};
  EXPECT_NEAR(stouffer(p, std::array{1.0, -1.0}).p, 1, 1e-12);
  EXPECT_LT(fisher(p).p, 0.001);
  EXPECT_GT(fisher(std::array{0.0, 0.5}).p, 0);  // a p of 0 is rounding
}

}  // namespace recommender_statistics_test
}  // namespace gainlens::analyses
