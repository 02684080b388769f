// The intervals of a sweep of recommenders: users are random, and with three seeds trainings are.
#include "analyses/attention_evidence.h"
#include "core/random.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numbers>
#include <string>
#include <vector>

namespace gainlens::analyses {
namespace attention_coverage_test {

struct Population {
  std::size_t users, seeds;
  double slope;    ///< of the share n_eff / keys, in the logarithm of the length of the history
  double of_seed;  ///< deviation of level and slope over trainings
};

double normal(Random& random) {
  return std::sqrt(-2 * std::log(1 - random.uniform())) * std::cos(2 * std::numbers::pi * random.uniform());
}

struct Sample {
  AttentionReading reading;
  std::vector<std::int64_t> lengths;  ///< [user] of the history
};

/// Histories are short, and some are long, as Amazon's are. What a user adds is the same in every training.
Sample sample(const Population& population, std::uint64_t seed) {
  constexpr std::size_t items = 50;
  Random random(seed, 79);
  runfile::AttentionRun run;
  run.request = {{"backbone", "sasrec"}};
  run.arms = {"plain"};
  for (std::size_t item = 0; item < items; ++item)
    run.users.item_train_count.push_back(static_cast<std::int64_t>(item + 1));
  std::vector<double> for_user;
  for (std::size_t user = 0; user < population.users; ++user) {
    const auto length = static_cast<std::int64_t>(3 - 3 * std::log(1 - random.uniform()));
    run.units.push_back(std::to_string(user));
    run.users.training_length.push_back(length - 1);
    run.users.history_length.push_back(length);
    run.users.target.push_back(static_cast<std::int64_t>(1 + random.below(items)));
    run.last_item.push_back(static_cast<std::int64_t>(1 + random.below(items)));
    const double skewed = std::exp(normal(random) / 2);
    for_user.push_back(0.05 * skewed);
  }
  for (std::size_t training = 0; training < population.seeds; ++training) {
    run.seeds.push_back(training);
    run.results.emplace_back().emplace();
    UserAttention found{static_cast<std::int64_t>(population.users), 1, 1, {}};
    const double level = 0.4 + population.of_seed * normal(random),
                 slope = population.slope + population.of_seed * normal(random);
    for (const AttentionNumber& one : attention_numbers)
      found.numbers[std::string(one.name)].assign(population.users, std::numeric_limits<double>::quiet_NaN());
    std::vector<double>& share = found.numbers.find("n_eff_share")->second;
    for (std::size_t user = 0; user < population.users; ++user)
      share[user] = level + slope * std::log(static_cast<double>(run.users.history_length[user]) / 5) + for_user[user] +
                    0.03 * normal(random);
    run.swept.emplace_back(std::move(found));
  }
  return {attention_evidence(run, {.seed = seed}).front(), run.users.history_length};
}

/// What the groups of users of a sample have on average over other users with histories of the same lengths.
std::vector<double> expected_of_groups(const Population& population, const AttentionReading& reading,
                                       const std::vector<std::int64_t>& lengths) {
  const Strata& strata = reading.groupings.front().strata;
  std::vector<double> expected(strata.users.size(), 0.4 + 0.05 * std::exp(1.0 / 8));
  for (std::size_t user = 0; user < lengths.size(); ++user) {
    const auto stratum = static_cast<std::size_t>(strata.stratum[user]);
    expected[stratum] += population.slope * std::log(static_cast<double>(lengths[user]) / 5) /
                         static_cast<double>(strata.users[stratum]);
  }
  return expected;
}

/// The share of intervals that hold what they are about, for each estimate that a page prints. The correlations are
/// those that samples of this size have on average.
std::map<std::string, double> coverage(const Population& population, std::uint64_t samples) {
  struct Found {
    SeedEstimate estimate;
    double expected;
  };
  std::map<std::string, std::vector<Found>> found;
  for (std::uint64_t seed = 0; seed < samples; ++seed) {
    const Sample one = sample(population, seed);
    const HeadNumber& share = *one.reading.heads.front().number("n_eff_share");
    const std::vector<SeedEstimate>& by = share.by.front();
    const std::vector<double> of_groups = expected_of_groups(population, one.reading, one.lengths);
    found["mean"].push_back({share.mean, 0});
    found["rho"].push_back({share.rho[0], 0});
    found["rho of the last item"].push_back({share.given_length[1], 0});
    found["shortest"].push_back({by.front(), of_groups.front()});
    found["longest"].push_back({by.back(), of_groups.back()});
    found["change"].push_back({share.change.front(), of_groups.back() - of_groups.front()});
  }
  for (const char* name : {"mean", "rho", "rho of the last item"}) {
    double sum = 0;
    for (const Found& one : found[name]) sum += *one.estimate.value / static_cast<double>(samples);
    for (Found& one : found[name]) one.expected = sum;
  }
  std::map<std::string, double> shares;
  for (const auto& [name, estimates] : found) {
    std::size_t given = 0, holds = 0;
    for (const auto& [estimate, expected] : estimates) {
      given += estimate.interval ? 1 : 0;
      holds += estimate.interval && estimate.interval->low <= expected && expected <= estimate.interval->high ? 1 : 0;
    }
    if (given > 0) shares[name] = static_cast<double>(holds) / static_cast<double>(given);
    ::testing::Test::RecordProperty(fmt::format("{} users, {} trainings, {}", population.users, population.seeds, name),
                                    fmt::format("{} of {} intervals hold", holds, given));
  }
  return shares;
}

// Of few users a correlation gets somewhat short intervals (docs/analyses/user-attention.md).
double least(std::size_t users) {
  return users < 50 ? 0.86 : 0.89;
}

TEST(AttentionCoverage, OverUsersIsThatStated) {
  for (const std::size_t users : {30, 100, 600})
    for (const auto& [name, share] : coverage({users, 1, -0.1, 0}, 200)) EXPECT_GE(share, least(users)) << name;
}

TEST(AttentionCoverage, OverUsersAndTrainingsIsThatStated) {
  for (const std::size_t users : {30, 600})
    for (const std::size_t seeds : {3, 5})
      for (const auto& [name, share] : coverage({users, seeds, -0.1, 0.02}, 200))
        EXPECT_GE(share, least(users)) << users << " users, " << seeds << " trainings, " << name;
}

}  // namespace attention_coverage_test
}  // namespace gainlens::analyses
