#include "analyses/item_frequency.h"

#include "core/random.h"
#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace gainlens::analyses {
namespace item_frequency_test {

using gainlens::testing::refusal_of;
using ::testing::HasSubstr;

ReadPositions positions_of(const std::vector<std::vector<std::size_t>>& users) {
  ReadPositions read;
  for (const std::vector<std::size_t>& items : users) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      read.item.push_back(items[i]);
      read.place.push_back(static_cast<double>(i + 1));
      read.length.push_back(static_cast<double>(items.size()));
    }
    read.begin.push_back(read.item.size());
  }
  return read;
}

FrequencyCorrelation one(const ReadPositions& read, const std::vector<double>& counts,
                         const std::vector<double>& values, FrequencyOptions options = {}) {
  return frequency_correlations(read, counts, {values}, options).front();
}

/// Users with random items of 62, of which the last one has no position.
ReadPositions some_users(std::size_t users, std::uint64_t seed = 5) {
  Random random(seed);
  std::vector<std::vector<std::size_t>> made(users);
  for (auto& items : made) {
    items.resize(8 + random.below(9));
    for (std::size_t& item : items) item = random.below(61);
  }
  return positions_of(made);
}

std::vector<double> some_values(std::size_t count, std::uint64_t seed = 6) {
  Random random(seed);
  std::vector<double> values(count);
  for (double& value : values) value = random.uniform();
  return values;
}

/// With ties.
const std::vector<double> some_counts = [] {
  std::vector<double> counts;
  for (std::size_t item = 0; item < 62; ++item) counts.push_back(static_cast<double>(item * item / 40));
  return counts;
}();

/// Ranks by counting, without sorting.
std::vector<double> counted_ranks(const std::vector<double>& x) {
  std::vector<double> ranks;
  for (const double value : x) {
    const auto below = std::ranges::count_if(x, [&](double other) { return other < value; });
    const auto equal = std::ranges::count(x, value);
    ranks.push_back(static_cast<double>(below) + (static_cast<double>(equal) + 1) / 2);
  }
  return ranks;
}

double pearson(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sx += x[i], sy += y[i], sxx += x[i] * x[i], syy += y[i] * y[i], sxy += x[i] * y[i];
  }
  return (n * sxy - sx * sy) / std::sqrt((n * sxx - sx * sx) * (n * syy - sy * sy));
}

/// What remains of y after the regression on 1, a and b, by Gram-Schmidt.
std::vector<double> rest_of(std::vector<double> y, std::vector<std::vector<double>> regressors) {
  regressors.insert(regressors.begin(), std::vector<double>(y.size(), 1.0));
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  const auto take_off = [&](std::vector<double>& from, const std::vector<double>& what) {
    const double slope = product(from, what) / product(what, what);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] -= slope * what[i];
  };
  for (std::size_t i = 0; i < regressors.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) take_off(regressors[i], regressors[j]);
    take_off(y, regressors[i]);
  }
  return y;
}

TEST(ItemFrequency, IsTheCorrelationOfItemMeans) {
  const ReadPositions read = some_users(40);
  const std::vector<double> values = some_values(read.item.size());
  std::map<std::size_t, std::vector<double>> sums;  // item: positions, value, place, length
  for (std::size_t i = 0; i < read.item.size(); ++i) {
    std::vector<double>& sum = sums[read.item[i]];
    sum.resize(4);
    sum[0] += 1, sum[1] += values[i], sum[2] += read.place[i], sum[3] += read.length[i];
  }
  std::vector<double> count, value, place, length;
  for (const auto& [item, sum] : sums) {
    count.push_back(some_counts[item]);
    value.push_back(sum[1] / sum[0]);
    place.push_back(sum[2] / sum[0]);
    length.push_back(sum[3] / sum[0]);
  }
  const FrequencyCorrelation found = one(read, some_counts, values);
  EXPECT_EQ(found.items, 61u);
  EXPECT_EQ(found.users, 40u);
  const auto value_ranks = counted_ranks(value), count_ranks = counted_ranks(count);
  EXPECT_NEAR(*found.rho, pearson(value_ranks, count_ranks), 1e-12);
  const std::vector<std::vector<double>> given = {counted_ranks(place), counted_ranks(length)};
  EXPECT_NEAR(*found.partial, pearson(rest_of(value_ranks, given), rest_of(count_ranks, given)), 1e-10);
  ASSERT_TRUE(found.interval && found.partial_interval);
  EXPECT_LT(found.interval->low, *found.rho);
  EXPECT_GT(found.interval->high, *found.rho);
  EXPECT_GE(found.interval->low, -1);
  EXPECT_LE(found.interval->high, 1);
}

/// The correlation with some_counts over the positions that are kept.
/// @param keeps  whether a position stays, by its user and its item
template <typename Keeps>
FrequencyCorrelation of_kept(const ReadPositions& read, const std::vector<double>& values, const Keeps& keeps) {
  ReadPositions kept;
  std::vector<double> kept_values;
  for (std::size_t user = 0; user < read.users(); ++user) {
    for (std::size_t i = read.begin[user]; i < read.begin[user + 1]; ++i) {
      if (!keeps(user, read.item[i])) continue;
      kept.item.push_back(read.item[i]);
      kept.place.push_back(read.place[i]);
      kept.length.push_back(read.length[i]);
      kept_values.push_back(values[i]);
    }
    kept.begin.push_back(kept.item.size());
  }
  return one(kept, some_counts, kept_values);
}

/// t errors of a jackknife: half of a 95% interval, squared.
/// @param t  of Student's t, with as many degrees of freedom as the fewer groups less one
double squared_half_width(const std::vector<double>& without, double t) {
  const auto groups = static_cast<double>(without.size());
  double mean = 0, squares = 0;
  for (const double value : without) mean += value / groups;
  for (const double value : without) squares += (value - mean) * (value - mean);
  return t * t * squares * (groups - 1) / groups;
}

TEST(ItemFrequency, TheIntervalIsTheJackknifeOverUsersAndOverItems) {
  const std::size_t users = 34;
  const ReadPositions read = some_users(users);
  const std::vector<double> values = some_values(read.item.size());
  const FrequencyCorrelation found = one(read, some_counts, values);  // fewer users than groups: each is left out
  ASSERT_EQ(found.without.users.size(), users);
  ASSERT_EQ(found.without.items.size(), 61u);
  std::vector<double> rhos, partials;
  for (std::size_t left_out = 0; left_out < users; ++left_out) {
    const FrequencyCorrelation without =
        of_kept(read, values, [&](std::size_t user, std::size_t) { return user != left_out; });
    rhos.push_back(*without.rho);
    partials.push_back(*without.partial);
  }
  std::vector<double> item_rhos, item_partials;
  for (std::size_t left_out = 0; left_out < 61; ++left_out) {
    const FrequencyCorrelation without =
        of_kept(read, values, [&](std::size_t, std::size_t item) { return item != left_out; });
    item_rhos.push_back(*without.rho);
    item_partials.push_back(*without.partial);
  }
  const auto expect_same = [](std::vector<double> found_values, std::vector<double> expected) {
    std::ranges::sort(found_values);
    std::ranges::sort(expected);
    ASSERT_EQ(found_values.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found_values[i], expected[i], 1e-12);
  };
  expect_same(found.without.users, rhos);
  expect_same(found.without.items, item_rhos);
  expect_same(found.partial_without.users, partials);
  expect_same(found.partial_without.items, item_partials);
  constexpr double t = 2.0345153;  // 33 degrees of freedom
  const auto half_width = [&](const std::vector<double>& of_users, const std::vector<double>& of_items) {
    return std::sqrt(squared_half_width(of_users, t) + squared_half_width(of_items, t));
  };
  EXPECT_NEAR(found.interval->high - *found.rho, half_width(rhos, item_rhos), 1e-6);
  EXPECT_NEAR(found.partial_interval->low, std::max(-1.0, *found.partial - half_width(partials, item_partials)), 1e-6);
}

TEST(ItemFrequency, EqualValuesHaveEqualMeans) {
  // 0.1 added three times is not 0.3: means by sums would not tie.
  std::vector<std::vector<std::size_t>> users(30);
  for (std::size_t i = 0; i < users.size(); ++i) users[i] = {0, 1, i % 3, 2, 3, 4, 5};
  const ReadPositions read = positions_of(users);
  const std::vector<double> values(read.item.size(), 0.1);
  const FrequencyCorrelation found = one(read, {1, 1, 1, 2, 2, 2}, values);
  EXPECT_EQ(found.rho.reason(), "the quantity is constant");
  EXPECT_EQ(found.interval.reason(), "the quantity is constant");
  EXPECT_EQ(found.partial.reason(), "the quantity is constant");
  for (const FrequencyBin& bin : found.bins) {
    EXPECT_EQ(bin.mean, 0.1);
    ASSERT_TRUE(bin.interval);
    EXPECT_EQ(bin.interval->low, 0.1);
    EXPECT_EQ(bin.interval->high, 0.1);
  }
  EXPECT_EQ(one(read, std::vector<double>(6, 2), some_values(read.item.size())).rho.reason(),
            "the training count is constant");
}

TEST(ItemFrequency, RoundingIsNoTrend) {
  const ReadPositions read = some_users(40);
  std::vector<double> values;
  for (const std::size_t item : read.item) values.push_back(0.7 + 1e-9 * static_cast<double>(item));
  const FrequencyCorrelation found = one(read, some_counts, values);
  for (const Measured* missing : {&found.rho, &found.partial, &found.naive_p})
    EXPECT_EQ(missing->reason(), "the quantity is constant up to rounding");
  EXPECT_EQ(found.interval.reason(), "the quantity is constant up to rounding");
  for (double& value : values) value = 0.7 + 1e2 * (value - 0.7);
  EXPECT_TRUE(one(read, some_counts, values).rho);
}

TEST(ItemFrequency, AQuantityOfTheItemAloneVariesWithItems) {
  const ReadPositions read = some_users(60);
  std::vector<double> values, counts;
  for (const std::size_t item : read.item) values.push_back(0.1 * static_cast<double>(item));
  for (std::size_t item = 0; item < 62; ++item) counts.push_back(static_cast<double>(item));
  const FrequencyCorrelation found = one(read, counts, values);
  EXPECT_EQ(*found.rho, 1);
  EXPECT_EQ(found.interval->low, 1);
  EXPECT_EQ(found.interval->high, 1);
  const std::vector<double> of_items = some_values(62, 3);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = of_items[read.item[i]];
  const FrequencyCorrelation random = one(read, counts, values);
  // Every item occurs without each of the users, so that leaving them out moves nothing.
  for (const double rho : random.without.users) EXPECT_NEAR(rho, *random.rho, 1e-12);
  EXPECT_LT(random.interval->low, *random.rho - 0.15);  // 61 items: the standard error of no trend is .13
  EXPECT_GT(random.interval->high, *random.rho + 0.15);
}

TEST(ItemFrequency, FewItemsGetNoInterval) {
  const auto with = [](std::size_t items) {
    std::vector<std::vector<std::size_t>> users(40);
    std::vector<double> counts;
    for (std::size_t item = 0; item < items; ++item) {
      for (std::size_t user = item % 2; user < 40; user += 2) users[user].push_back(item);
      counts.push_back(static_cast<double>(item));
    }
    const ReadPositions read = positions_of(users);
    return one(read, counts, some_values(read.item.size()));
  };
  EXPECT_EQ(with(49).interval.reason(), "fewer than 50 items");
  EXPECT_EQ(with(49).partial_interval.reason(), "fewer than 50 items");
  EXPECT_TRUE(with(49).bins.front().interval);
  const std::vector<FrequencyCorrelation> few = {with(49)};
  EXPECT_EQ(over_seeds(few).interval.reason(), "fewer than 50 items");
  EXPECT_EQ(difference_to(few, few).interval.reason(), "fewer than 50 items");
  EXPECT_TRUE(with(50).interval);
}

TEST(ItemFrequency, PlaceAndLengthThatAreConstantExplainNothing) {
  std::vector<std::vector<std::size_t>> users;
  for (std::size_t i = 0; i < 12; ++i) users.push_back({i % 6});
  const ReadPositions read = positions_of(users);
  const FrequencyCorrelation found = one(read, {1, 2, 3, 4, 5, 6}, some_values(12));
  EXPECT_EQ(*found.partial, *found.rho);
}

TEST(ItemFrequency, FewUsersGetNoInterval) {
  for (const std::size_t users : {1u, 29u}) {
    const ReadPositions read = some_users(users);
    const FrequencyCorrelation found = one(read, some_counts, some_values(read.item.size()));
    EXPECT_EQ(found.interval.reason(), "fewer than 30 users");
    EXPECT_TRUE(found.without.users.empty());
    EXPECT_TRUE(found.without.items.empty());
    EXPECT_EQ(found.bins.front().interval.reason(), "fewer than 30 users");
  }
  EXPECT_TRUE(one(some_users(30), some_counts, some_values(some_users(30).item.size())).interval);
  EXPECT_THAT(one({}, some_counts, {}).rho.reason(), HasSubstr("needs at least 3"));
  EXPECT_TRUE(one({}, some_counts, {}).bins.empty());
}

TEST(ItemFrequency, BinsKeepEqualCountsTogether) {
  std::vector<std::vector<std::size_t>> users(1);
  std::vector<double> counts;
  for (std::size_t i = 0; i < 100; ++i) {
    users[0].push_back(i);
    counts.push_back(i < 60 ? 1 : static_cast<double>(i));
  }
  const ReadPositions read = positions_of(users);
  const FrequencyCorrelation found = one(read, counts, counts, {.bins = 5});
  ASSERT_EQ(found.bins.size(), 5u);
  EXPECT_EQ(found.bins[0].items, 60u);
  EXPECT_EQ(found.bins[0].mean, 1);
  for (std::size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(found.bins[i].items, 10u);
    EXPECT_EQ(found.bins[i].fewest, static_cast<double>(50 + 10 * i));
    EXPECT_EQ(found.bins[i].most, static_cast<double>(59 + 10 * i));
    EXPECT_EQ(found.bins[i].mean, 54.5 + 10 * static_cast<double>(i));
    EXPECT_EQ(found.bins[i].mean_count, found.bins[i].mean);
  }
  EXPECT_EQ(one(read, std::vector<double>(100, 3), counts).bins.size(), 1u);
}

TEST(ItemFrequency, NeitherThreadsNorCompanyChangeANumber) {
  const ReadPositions read = some_users(60);
  const std::vector<double> first = some_values(read.item.size()), second = some_values(read.item.size(), 9);
  const auto both = frequency_correlations(read, some_counts, {first, second}, {.groups = 25, .threads = 3});
  const FrequencyCorrelation alone = one(read, some_counts, second, {.groups = 25});
  EXPECT_EQ(alone.without.users.size(), 25u);
  EXPECT_EQ(alone.without.items.size(), 25u);
  for (const auto units : {&LeftOut::users, &LeftOut::items}) {
    EXPECT_EQ(both[1].without.*units, alone.without.*units);
    EXPECT_EQ(both[1].partial_without.*units, alone.partial_without.*units);
    EXPECT_NE(one(read, some_counts, second, {.groups = 25, .seed = 1}).without.*units, alone.without.*units);
  }
  EXPECT_EQ(both[1].bins.front().interval->low, alone.bins.front().interval->low);
}

TEST(ItemFrequency, SeedsAreAveragedGroupByGroup) {
  const ReadPositions read = some_users(60);
  const std::vector<double> first = some_values(read.item.size()), second = some_values(read.item.size(), 9);
  const auto seeds = frequency_correlations(read, some_counts, {first, second}, {});
  const SeedFrequency mean = over_seeds(seeds);
  EXPECT_NEAR(*mean.rho, (*seeds[0].rho + *seeds[1].rho) / 2, 1e-15);
  EXPECT_NEAR(*mean.deviation, std::abs(*seeds[0].rho - *seeds[1].rho) / std::sqrt(2.0), 1e-14);
  EXPECT_LT(mean.interval->high - mean.interval->low, seeds[0].interval->high - seeds[0].interval->low);
  const SeedFrequency one_seed = over_seeds(std::span(seeds).first(1));
  EXPECT_EQ(one_seed.deviation.reason(), "one seed alone");
  EXPECT_EQ(one_seed.interval->low, seeds[0].interval->low);
  EXPECT_EQ(*one_seed.partial, *seeds[0].partial);
}

TEST(ItemFrequency, AModelIsComparedWithItsPlacebo) {
  const ReadPositions read = some_users(60);
  const std::vector<double> first = some_values(read.item.size()), second = some_values(read.item.size(), 9);
  const auto found = frequency_correlations(read, some_counts, {first, second}, {});
  const std::span<const FrequencyCorrelation> all(found);
  const FrequencyDifference same = difference_to(all.first(1), all.first(1));
  EXPECT_EQ(*same.value, 0);
  EXPECT_EQ(same.interval->low, 0);
  EXPECT_EQ(same.interval->high, 0);
  const FrequencyDifference other = difference_to(all.first(1), all.last(1));
  EXPECT_EQ(*other.value, *found[0].rho - *found[1].rho);
  EXPECT_LT(other.interval->low, *other.value);
  const auto constant = frequency_correlations(read, some_counts, {std::vector<double>(read.item.size(), 2)}, {});
  EXPECT_EQ(difference_to(all.first(1), constant).value.reason(), "of the placebo: the quantity is constant");
}

TEST(ItemFrequency, WrongRequestsAreRefused) {
  const ReadPositions read = some_users(3);
  const std::vector<double> values = some_values(read.item.size());
  const auto refusal = [&](const ReadPositions& given, const std::vector<double>& counts, const std::vector<double>& of,
                           const FrequencyOptions& options) {
    return refusal_of([&] { one(given, counts, of, options); });
  };
  EXPECT_THAT(refusal(read, some_counts, values, {.groups = 19}), HasSubstr("--groups: 19; must be 20 to"));
  EXPECT_THAT(refusal(read, some_counts, values, {.bins = 1}), HasSubstr("--bins: 1; must be 2 to 1000"));
  EXPECT_THAT(refusal(read, {1, 2}, values, {}), HasSubstr("has no training count"));
  std::vector<double> broken = values;
  broken[1] = std::nan("");
  EXPECT_THAT(refusal(read, some_counts, broken, {}), HasSubstr("a value is NaN or infinite"));
  broken.pop_back();
  EXPECT_THAT(refusal(read, some_counts, broken, {}), HasSubstr("values for"));
  ReadPositions other = read;
  other.place.pop_back();
  EXPECT_THAT(refusal(other, some_counts, values, {}), HasSubstr("do not fit each other"));
}

}  // namespace item_frequency_test
}  // namespace gainlens::analyses
