#include "analyses/error_order.h"

#include "analyses/crossed_estimate.h"
#include "analyses/rank_correlation.h"
#include "core/random.h"
#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace gainlens::analyses {
namespace error_order_test {

using gainlens::testing::refusal_of;
using ::testing::HasSubstr;

/// Users with random numbers; the rank falls with the precision, and with the length, by given shares.
RankedUsers some_users(std::size_t users, std::size_t seeds, double of_precision, double of_length,
                       std::uint64_t seed = 1) {
  Random random(seed);
  RankedUsers made{.arm = "bft"};
  made.most_precision = 100;
  for (std::size_t user = 0; user < users; ++user) {
    made.history_length.push_back(static_cast<double>(2 + random.below(9)));
    made.history_popularity.push_back(random.uniform());
    made.last_popularity.push_back(static_cast<double>(random.below(30)));
    made.target.push_back(static_cast<std::int64_t>(1 + random.below(60)));
  }
  for (std::size_t s = 0; s < seeds; ++s) {
    made.seeds.push_back(s);
    std::vector<double>&rank = made.rank.emplace_back(), &precision = made.precision.emplace_back(),
    &confidence = made.confidence.emplace_back();
    for (std::size_t user = 0; user < users; ++user) {
      precision.push_back(100 * random.uniform());
      confidence.push_back(random.uniform());
      const double error =
          random.uniform() - of_precision * precision.back() / 100 - of_length * made.history_length[user] / 10;
      rank.push_back(std::max(1.0, std::floor(60 * error + 1)));
    }
  }
  return made;
}

double pearson(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    sx += x[i], sy += y[i], sxx += x[i] * x[i], syy += y[i] * y[i], sxy += x[i] * y[i];
  return (n * sxy - sx * sy) / std::sqrt((n * sxx - sx * sx) * (n * syy - sy * sy));
}

/// Ranks by counting, without sorting.
std::vector<double> counted_ranks(const std::vector<double>& x) {
  std::vector<double> ranks;
  for (const double value : x) {
    const auto below = std::ranges::count_if(x, [&](double other) { return other < value; });
    ranks.push_back(static_cast<double>(below) + (static_cast<double>(std::ranges::count(x, value)) + 1) / 2);
  }
  return ranks;
}

double partial_by_hand(double xy, double xz, double yz) {
  return (xy - xz * yz) / std::sqrt((1 - xz * xz) * (1 - yz * yz));
}

TEST(RankCorrelations, PartialOnesAreThoseOfTheFormulas) {
  const RankedUsers made = some_users(200, 1, 0.5, 0.5);
  const std::vector<std::vector<double>> columns{made.precision[0], made.history_length, made.last_popularity,
                                                 made.rank[0], std::vector<double>(200, 3)};
  std::vector<CentredRanks> ranks;
  for (const auto& column : columns) ranks.emplace_back(column);
  const CentredRanks* const variables[] = {&ranks[0], &ranks[1], &ranks[2], &ranks[3], &ranks[4], &ranks[1]};
  const RankCorrelations found{variables};
  const auto rho = [&](std::size_t i, std::size_t j) {
    return pearson(counted_ranks(columns[i]), counted_ranks(columns[j]));
  };
  EXPECT_NEAR(found.rho(0, 3), rho(0, 3), 1e-12);
  const std::size_t one[] = {1}, two[] = {1, 2}, constant[] = {4, 1}, twice[] = {1, 5, 2}, own[] = {0};
  EXPECT_NEAR(found.partial(0, 3, one), partial_by_hand(rho(0, 3), rho(0, 1), rho(3, 1)), 1e-12);
  const double given_two = partial_by_hand(partial_by_hand(rho(0, 3), rho(0, 1), rho(3, 1)),
                                           partial_by_hand(rho(0, 2), rho(0, 1), rho(2, 1)),
                                           partial_by_hand(rho(3, 2), rho(3, 1), rho(2, 1)));
  EXPECT_NEAR(found.partial(0, 3, two), given_two, 1e-12);
  EXPECT_EQ(found.partial(0, 3, constant), found.partial(0, 3, one));
  EXPECT_NEAR(found.partial(0, 3, twice), given_two, 1e-12) << "what another one determines explains nothing more";
  EXPECT_TRUE(std::isnan(found.partial(0, 3, own)));
  EXPECT_TRUE(std::isnan(found.rho(0, 4)));
}

TEST(ErrorOrder, IsTheCorrelationWithTheSuccess) {
  const RankedUsers made = some_users(300, 2, 0.6, 0.2);
  const ErrorOrderReading found = error_order(made, {});
  EXPECT_EQ(found.users, 300u);
  EXPECT_EQ(found.groups, 60u);  // one for each test item
  double sum = 0;
  for (std::size_t seed = 0; seed < 2; ++seed) {
    const double rho = -pearson(counted_ranks(made.precision[seed]), counted_ranks(made.rank[seed]));
    EXPECT_NEAR(*found.by_rank.rho[0].seeds[seed], rho, 1e-12);
    sum += rho / 2;
    std::vector<double> hit;
    for (const double rank : made.rank[seed]) hit.push_back(rank <= 10 ? 1 : 0);
    EXPECT_NEAR(*found.by_hit.rho[4].seeds[seed], pearson(counted_ranks(made.confidence[seed]), counted_ranks(hit)),
                1e-12);
  }
  EXPECT_NEAR(*found.by_rank.rho[0].value, sum, 1e-12);
  const SeedEstimate& length = found.by_rank.rho[1];
  EXPECT_NEAR(*found.by_rank.difference[1].value, sum - std::abs(*length.value), 1e-12);
  EXPECT_EQ(verdict_of(found.by_rank.rho[0]), OrderVerdict::orders);
  EXPECT_EQ(verdict_of(found.by_rank.given_all), OrderVerdict::orders);
}

TEST(ErrorOrder, ARivalThatExplainsAllLeavesNothing) {
  RankedUsers made = some_users(400, 3, 0, 0.8);
  for (auto& precision : made.precision) {
    Random random(9);
    for (std::size_t user = 0; user < 400; ++user)
      precision[user] = made.history_length[user] + 0.001 * random.uniform();
  }
  const ErrorOrderReading found = error_order(made, {});
  EXPECT_EQ(verdict_of(found.by_rank.rho[0]), OrderVerdict::orders);
  EXPECT_NE(verdict_of(found.by_rank.given[1]), OrderVerdict::orders);
  EXPECT_LT(std::abs(*found.by_rank.given[1].value), 0.1);
  made.precision = {made.history_length, made.history_length, made.history_length};
  EXPECT_THAT(error_order(made, {}).by_rank.given[1].value.reason(), HasSubstr("the rivals determine the precision"));
}

TEST(ErrorOrder, AConstantPrecisionHasNoOrder) {
  RankedUsers made = some_users(100, 1, 0.5, 0);
  std::ranges::fill(made.precision[0], 100);
  const ErrorOrderReading found = error_order(made, {});
  EXPECT_EQ(found.at_bound, 1);
  EXPECT_THAT(found.by_rank.rho[0].value.reason(), HasSubstr("the precision is the same for every user"));
  EXPECT_EQ(verdict_of(found.by_rank.rho[0]), OrderVerdict::undecided);
  EXPECT_EQ(found.bins[0].size(), 1u);
}

TEST(ErrorOrder, GroupsKeepTheUsersOfOneTestItemTogether) {
  // Each user four times, with one test item: the interval is that of the users once.
  const RankedUsers once = [] {
    RankedUsers made = some_users(40, 1, 0.5, 0.2);
    for (std::size_t user = 0; user < 40; ++user) made.target[user] = static_cast<std::int64_t>(user + 1);
    return made;
  }();
  RankedUsers four = once;
  const auto repeat = [](auto& values) {
    const auto first = values;
    for (int i = 0; i < 3; ++i) values.insert(values.end(), first.begin(), first.end());
  };
  for (auto* values : {&four.history_length, &four.history_popularity, &four.last_popularity, &four.rank[0],
                       &four.precision[0], &four.confidence[0]})
    repeat(*values);
  repeat(four.target);
  const SeedEstimate one = error_order(once, {}).by_rank.rho[0], many = error_order(four, {}).by_rank.rho[0];
  EXPECT_NEAR(*one.value, *many.value, 1e-12);
  EXPECT_NEAR(one.interval->low, many.interval->low, 1e-9);
}

TEST(ErrorOrder, BinsHoldEveryUserOnceAndTheirMeans) {
  const RankedUsers made = some_users(150, 2, 0.5, 0.3);
  const ErrorOrderReading found = error_order(made, {.bins = 5});
  for (std::size_t q = 0; q < error_quantities; ++q) {
    std::size_t users = 0;
    double hits = 0;
    for (const ErrorBin& bin : found.bins[q]) {
      users += bin.users;
      hits += bin.hit * static_cast<double>(bin.users);
      EXPECT_LE(bin.gain, bin.hit);
      EXPECT_TRUE(bin.hit_interval->low <= bin.hit && bin.hit <= bin.hit_interval->high);
    }
    EXPECT_EQ(users, 300u);
    double expected = 0;
    for (const auto& seed : made.rank)
      expected += static_cast<double>(std::ranges::count_if(seed, [](double r) { return r <= 10; }));
    EXPECT_NEAR(hits, expected, 1e-9);
  }
  ASSERT_EQ(found.bins[0].size(), 5u);  // no ties
  for (const ErrorBin& bin : found.bins[0]) EXPECT_EQ(bin.users, 60u);
}

TEST(ErrorOrder, ThreadsChangeNoNumber) {
  const RankedUsers made = some_users(100, 3, 0.5, 0.3);
  EXPECT_EQ(to_json(error_order(made, {.threads = 1})), to_json(error_order(made, {.threads = 3})));
  EXPECT_EQ(to_json(error_order(made, {}))["interval_over"], "trainings and users");
}

TEST(ErrorOrder, FewUsersHaveNoIntervalAndWrongRequestsAreRefused) {
  EXPECT_EQ(error_order(some_users(29, 1, 1, 0), {}).by_rank.rho[0].interval.reason(), "fewer than 30 users");
  RankedUsers made = some_users(40, 1, 1, 0);
  for (std::size_t user = 0; user < 40; ++user) made.target[user] = 1 + static_cast<std::int64_t>(user % 19);
  EXPECT_EQ(error_order(made, {}).by_rank.rho[0].interval.reason(), "fewer than 20 test items");
  EXPECT_THAT(refusal_of([&] { error_order(made, {.bins = 41}); }), HasSubstr("--bins: 41 bins of 40 users"));
  EXPECT_THAT(refusal_of([&] { error_order(made, {.groups = 19}); }), HasSubstr("--groups: 19; must be 20 to 10000"));
  EXPECT_THAT(refusal_of([&] { error_order(made, {.bins = 1}); }), HasSubstr("--bins: 1; must be 2 to 1000"));
  made.precision[0][3] = NAN;
  EXPECT_THAT(refusal_of([&] { error_order(made, {}); }), HasSubstr("bft: a value of a user is NaN or infinite"));
}

TEST(OrderVerdicts, FollowTheInterval) {
  SeedEstimate rho;
  const auto of = [&](double low, double high) {
    rho.interval = Interval{low, high};
    return verdict_of(rho);
  };
  EXPECT_EQ(verdict_of(rho), OrderVerdict::undecided);
  EXPECT_EQ(of(0.01, 0.2), OrderVerdict::orders);
  EXPECT_EQ(of(-0.2, -0.01), OrderVerdict::reverses);
  EXPECT_EQ(of(-0.2, 0.04), OrderVerdict::does_not);
  EXPECT_EQ(of(-0.2, 0.06), OrderVerdict::undecided);
}

}  // namespace error_order_test
}  // namespace gainlens::analyses
