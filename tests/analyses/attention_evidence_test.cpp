// What the attention of recommenders rests on: against loops and against what was made up.
#include "analyses/attention_evidence.h"

#include "analyses/rank_correlation.h"
#include "analyses/statistics.h"
#include "runfile/made_attention_run.h"
#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace gainlens::analyses {
namespace attention_evidence_test {

using ::testing::HasSubstr;
using testing::made_attention_run;
using testing::MadeSweep;
using testing::refusal_of;

constexpr auto length = static_cast<std::size_t>(UserTrait::history_length),
               last = static_cast<std::size_t>(UserTrait::last_count);

/// [user] of a number, without one user.
std::vector<double> values_of(const runfile::AttentionRun& run, std::size_t model, const char* name, const Head& head,
                              std::size_t without) {
  std::vector<double> values;
  for (std::size_t user = 0; user < run.units.size(); ++user)
    if (user != without)
      values.push_back(run.swept[model]->at(name, static_cast<std::int64_t>(user), head.layer, head.head));
  return values;
}

std::vector<double> trait_of(const runfile::AttentionRun& run, std::size_t trait, std::size_t without) {
  std::vector<double> values;
  for (std::size_t user = 0; user < run.units.size(); ++user) {
    if (user == without) continue;
    values.push_back(static_cast<double>(trait == length ? run.users.history_length[user]
                                         : trait == last ? run.last_count(user)
                                                         : run.users.target_count(user)));
  }
  return values;
}

double rho(const std::vector<double>& x, const std::vector<double>& y) {
  return *correlation(x, y).spearman;
}

TEST(AttentionEvidence, IsThatOfLoopsOverUsersAndLeftOutUsers) {
  MadeSweep made;
  made.seeds = {4};  // one seed: intervals are over users
  const runfile::AttentionRun run = made_attention_run(made);
  const std::vector<AttentionReading> readings = attention_evidence(run, {});
  ASSERT_EQ(readings.size(), 2u);
  const AttentionReading& reading = readings[1];
  EXPECT_EQ(reading.arm, "bft");
  EXPECT_EQ(reading.groups, made.users);  // one for each user
  ASSERT_EQ(reading.heads.size(), 4u);
  const std::size_t nobody = made.users;
  for (const Head& head : reading.heads) {
    for (const char* name : {"n_eff", "kalman_gain", "model_gain", "last_mass"}) {
      const HeadNumber& number = *head.number(name);
      const std::vector<double> all = values_of(run, 1, name, head, nobody);
      EXPECT_NEAR(*number.mean.value, mean(all), 1e-12);
      const Interval direct = *mean_interval(all);  // the jackknife of a mean is its usual error
      EXPECT_NEAR(number.mean.interval->low, direct.low, 1e-9);
      EXPECT_NEAR(number.mean.interval->high, direct.high, 1e-9);
      std::vector<double> rhos, partials;
      const auto partial = [&](std::size_t without) {
        const std::vector<double> own = values_of(run, 1, name, head, without),
                                  of_length = trait_of(run, length, without), of_last = trait_of(run, last, without);
        const double xy = rho(own, of_last), xz = rho(own, of_length), yz = rho(of_last, of_length);
        return (xy - xz * yz) / std::sqrt((1 - xz * xz) * (1 - yz * yz));
      };
      for (std::size_t user = 0; user < made.users; ++user) {
        rhos.push_back(rho(values_of(run, 1, name, head, user), trait_of(run, length, user)));
        partials.push_back(partial(user));
      }
      const double value = rho(all, trait_of(run, length, nobody));
      EXPECT_NEAR(*number.rho[length].value, value, 1e-12);
      EXPECT_NEAR(number.rho[length].interval->low, left_out_interval(value, rhos, -1, 1)->low, 1e-9);
      EXPECT_NEAR(*number.given_length[last].value, partial(nobody), 1e-12);
      EXPECT_NEAR(number.given_length[last].interval->high, left_out_interval(partial(nobody), partials, -1, 1)->high,
                  1e-9);
    }
  }
}

TEST(AttentionEvidence, GroupsAreThoseOfTheOtherAnalyses) {
  const runfile::AttentionRun run = made_attention_run();
  const AttentionReading reading = attention_evidence(run, {}).front();
  UserCounts by_last = run.users;
  by_last.target = run.last_item;
  const Strata expected[] = {by_user_activity(run.users), by_item_frequency(by_last), by_item_frequency(run.users)};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(reading.groupings[i + 1].strata.stratum, expected[i].stratum) << i;
    EXPECT_EQ(reading.groupings[i + 1].strata.edges, expected[i].edges) << i;
  }
  for (std::size_t grouping = 0; grouping < user_groupings; ++grouping) {
    const GroupedUsers& users = reading.groupings[grouping];
    const HeadNumber& number = *reading.heads[2].number("entropy");
    ASSERT_EQ(number.by[grouping].size(), users.strata.users.size());
    for (std::size_t group = 0; group < users.strata.users.size(); ++group) {
      double sum = 0, lengths = 0, count = 0;
      for (std::size_t user = 0; user < run.units.size(); ++user) {
        if (users.strata.stratum[user] != static_cast<std::int64_t>(group)) continue;
        for (std::size_t seed = 0; seed < 3; ++seed)
          sum += run.swept[seed]->at("entropy", static_cast<std::int64_t>(user), 1, 0) / 3;
        lengths += static_cast<double>(run.users.history_length[user]);
        ++count;
      }
      EXPECT_EQ(count, static_cast<double>(users.strata.users[group]));
      EXPECT_NEAR(*number.by[grouping][group].value, sum / count, 1e-12);
      EXPECT_NEAR(users.mean_length[group], lengths / count, 1e-12);
    }
    EXPECT_NEAR(*number.change[grouping].value, *number.by[grouping].back().value - *number.by[grouping].front().value,
                1e-12);
  }
  EXPECT_GT(reading.groupings[0].strata.users.size(), 4u);
}

TEST(AttentionEvidence, WhatWasMadeUpIsFound) {
  MadeSweep made;
  made.users = 300;
  const std::vector<AttentionReading> readings = attention_evidence(made_attention_run(made), {});
  for (const AttentionReading& reading : readings) {
    EXPECT_EQ(reading.groups, 100u);
    const SeedEstimate& falls = reading.heads[0].number("n_eff_share")->rho[length];
    ASSERT_TRUE(falls.interval);
    EXPECT_LT(falls.interval->high, -0.8);
    const SeedEstimate& rises = reading.heads[3].number("kalman_gain")->given_length[last];
    EXPECT_GT(rises.interval->low, 0.8);
    EXPECT_TRUE(rises.deviation);
    const SeedEstimate& nothing = reading.heads[1].number("kalman_gain")->given_length[last];
    EXPECT_LT(std::abs(*nothing.value), 0.2);
    EXPECT_LT(reading.heads[3].number("kalman_gain")->change[2].interval->low, 0.3);
    EXPECT_GT(reading.heads[3].number("kalman_gain")->change[2].interval->low, 0.0);
  }
  EXPECT_EQ(readings[0].heads[0].number("model_gain").reason(), "the model has none");
  EXPECT_TRUE(readings[1].heads[0].number("model_gain"));
  EXPECT_FALSE(readings[1].heads[0].number("mask_mass"));
}

TEST(AttentionEvidence, ThreadsChangeNothingAndTheSeedOnlyIntervals) {
  const auto json = [](const runfile::AttentionRun& run, const AttentionOptions& options) {
    OrderedJson all = OrderedJson::array();
    for (const AttentionReading& reading : attention_evidence(run, options)) all.push_back(to_json(reading));
    return all;
  };
  const runfile::AttentionRun run = made_attention_run();
  const OrderedJson one = json(run, {.groups = 20});
  EXPECT_EQ(json(run, {.groups = 20, .threads = 3}), one);
  EXPECT_EQ(one[0]["interval_over"], "trainings and users");
  EXPECT_TRUE(one[0]["heads"][0]["model_gain"].is_null());
  EXPECT_EQ(one[0]["heads"][0]["model_gain_reason"], "the model has none");
  MadeSweep made;
  made.seeds = {0};
  const runfile::AttentionRun alone = made_attention_run(made);
  const OrderedJson first = json(alone, {.groups = 20})[0], second = json(alone, {.groups = 20, .seed = 1})[0];
  EXPECT_EQ(first["interval_over"], "users");
  const OrderedJson &mean = first["heads"][0]["n_eff"]["mean"], &other = second["heads"][0]["n_eff"]["mean"];
  EXPECT_EQ(mean["value"], other["value"]);
  EXPECT_NE(mean["interval"], other["interval"]);
}

TEST(AttentionEvidence, FewUsersGetNoInterval) {
  MadeSweep made;
  made.users = 29;
  const AttentionReading reading = attention_evidence(made_attention_run(made), {}).front();
  EXPECT_EQ(reading.groups, 0u);
  const HeadNumber& number = *reading.heads[0].number("n_eff");
  EXPECT_TRUE(number.mean.value);
  EXPECT_EQ(number.mean.interval.reason(), "fewer than 30 users");
}

TEST(AttentionEvidence, ArmsWithoutAFinishedTrainingAreLeftOut) {
  runfile::AttentionRun run = made_attention_run();
  for (std::size_t i = 0; i < 3; ++i) run.swept[i].reset();
  const std::vector<AttentionReading> readings = attention_evidence(run, {});
  ASSERT_EQ(readings.size(), 1u);
  EXPECT_EQ(readings[0].arm, "bft");
  for (auto& swept : run.swept) swept.reset();
  EXPECT_THAT(refusal_of([&] { attention_evidence(run, {}); }), HasSubstr("holds no model"));
  EXPECT_THAT(refusal_of([&] { attention_evidence(run, {.groups = 5}); }), HasSubstr("--groups: 5"));
}

TEST(AttentionEvidence, EqualNumbersHaveNoCorrelation) {
  runfile::AttentionRun run = made_attention_run();
  for (std::size_t i = 3; i < 6; ++i)
    run.swept[i]->numbers.at("model_gain").assign(run.swept[i]->numbers.at("model_gain").size(), 0.25);
  const AttentionReading reading = attention_evidence(run, {})[1];
  const HeadNumber& number = *reading.heads[0].number("model_gain");
  EXPECT_EQ(*number.mean.value, 0.25);
  EXPECT_THAT(number.rho[length].value.reason(), HasSubstr("the same for every user"));
}

}  // namespace attention_evidence_test
}  // namespace gainlens::analyses
