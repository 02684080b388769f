#include "analyses/error_order.h"

#include "analyses/crossed_estimate.h"
#include "analyses/on_threads.h"
#include "analyses/rank_correlation.h"
#include "analyses/statistics.h"
#include "core/check.h"
#include "core/random.h"
#include "core/ranking_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <utility>

namespace gainlens::analyses {
namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t no_group = std::numeric_limits<std::size_t>::max();
constexpr std::size_t precision = 0, first_rival = 1, confidence_place = error_quantities - 1;
constexpr RankingMetric hit_at_10{RankingMetric::Kind::hit, 10}, gain_at_10{RankingMetric::Kind::gain, 10};

/// [user] of a quantity in the model of a seed.
std::span<const double> quantity_of(const RankedUsers& users, std::size_t quantity, std::size_t seed) {
  switch (quantity) {
    case precision:
      return users.precision[seed];
    case 1:
      return users.history_length;
    case 2:
      return users.history_popularity;
    case 3:
      return users.last_popularity;
    default:
      return users.confidence[seed];
  }
}

/// Every number that has an interval, of one seed and some users. NaN: it does not exist.
struct Estimates {
  std::array<double, error_quantities> rho, given;
  double given_data, given_all;
};
struct BothEstimates {
  Estimates by_rank, by_hit;
};

Estimates estimates_of(const RankCorrelations& found, std::size_t success) {
  Estimates all{};
  const std::array<std::size_t, error_quantities - 1> rivals = {1, 2, 3, confidence_place};
  const std::span<const std::size_t> every(rivals);
  for (std::size_t q = 0; q < error_quantities; ++q) all.rho[q] = found.rho(q, success);
  for (const std::size_t rival : rivals) all.given[rival] = found.partial(precision, success, {&rival, 1});
  all.given_data = found.partial(precision, success, every.first(rivals.size() - 1));
  all.given_all = found.partial(precision, success, every);
  return all;
}

/// Users without a group, and what they have.
class Remaining {
 public:
  Remaining(const RankedUsers& users, std::span<const std::size_t> group, std::size_t without) : users_(users) {
    for (std::size_t user = 0; user < group.size(); ++user) {
      if (group[user] != without) user_.push_back(user);
    }
    for (std::size_t q = first_rival; q < confidence_place; ++q) data_ranks_.emplace_back(of(quantity_of(users, q, 0)));
  }

  BothEstimates estimates_for(std::size_t seed) const {
    std::vector<double> rank, hit;
    for (const std::size_t user : user_) {
      rank.push_back(-users_.rank[seed][user]);
      hit.push_back(hit_at_10.value_at(users_.rank[seed][user]));
    }
    const CentredRanks own(of(users_.precision[seed])), confident(of(users_.confidence[seed])), seed_ranks(rank),
        hit_ranks(hit);
    const CentredRanks* const variables[] = {&own,       &data_ranks_[0], &data_ranks_[1], &data_ranks_[2],
                                             &confident, &seed_ranks,     &hit_ranks};
    const RankCorrelations found{variables};
    return {estimates_of(found, error_quantities), estimates_of(found, error_quantities + 1)};
  }

 private:
  std::vector<double> of(std::span<const double> values) const {
    std::vector<double> found;
    found.reserve(user_.size());
    for (const std::size_t user : user_) found.push_back(values[user]);
    return found;
  }

  const RankedUsers& users_;
  std::vector<std::size_t> user_;
  std::vector<CentredRanks> data_ranks_;  // the same in every seed
};

/// [user] the group of each. Groups are random, those with one test item are together, and sizes are as equal as large
/// items allow: items are taken from the largest on, each into the smallest group.
std::vector<std::size_t> groups_by_target(std::span<const std::int64_t> target, std::size_t groups,
                                          std::uint64_t seed) {
  std::map<std::int64_t, std::size_t> sizes;
  for (const std::int64_t item : target) ++sizes[item];
  std::vector<std::pair<std::int64_t, std::size_t>> items(sizes.begin(), sizes.end());
  Random(seed).shuffle(items);
  std::ranges::stable_sort(items, std::ranges::greater(), [](const auto& item) { return item.second; });
  std::vector<std::size_t> filled(groups, 0);
  std::map<std::int64_t, std::size_t> group_of;
  for (const auto& [item, size] : items) {
    const auto smallest = static_cast<std::size_t>(std::ranges::min_element(filled) - filled.begin());
    group_of[item] = smallest;
    filled[smallest] += size;
  }
  std::vector<std::size_t> group;
  for (const std::int64_t item : target) group.push_back(group_of.at(item));
  return group;
}

/// All estimates, of every user and without each group.
struct AllEstimates {
  std::vector<BothEstimates> all_users;             // [seed]
  std::vector<std::vector<BothEstimates>> without;  // [seed][group]

  /// @param number  what is wanted of an Estimates
  template <typename Number>
  Replicates of(Estimates BothEstimates::*success, const Number& number) const {
    Replicates found;
    for (const BothEstimates& seed : all_users) found.values.push_back(number(seed.*success));
    for (const std::vector<BothEstimates>& seed : without) {
      std::vector<double>& values = found.without.emplace_back();
      for (const BothEstimates& group : seed) values.push_back(number(group.*success));
    }
    return found;
  }
};

ErrorOrder order_of(const AllEstimates& all, Estimates BothEstimates::*success, const std::string& no_interval) {
  ErrorOrder order;
  const auto estimate = [&](const std::string& missing, double reach, const auto& number) {
    return over_seeds(all.of(success, number), missing, no_interval, -reach, reach);
  };
  const std::string given = "the rivals determine the precision, or it is the same for every user";
  for (std::size_t q = 0; q < error_quantities; ++q) {
    order.rho[q] =
        estimate(fmt::format("the {} is the same for every user, or the success is", error_quantity_names[q]), 1,
                 [q](const Estimates& found) { return found.rho[q]; });
  }
  for (std::size_t rival = first_rival; rival < error_quantities; ++rival) {
    const double sign = order.rho[rival].value && *order.rho[rival].value < 0 ? -1 : 1;
    order.difference[rival] = estimate("one of both does not exist", 2, [rival, sign](const Estimates& found) {
      return found.rho[precision] - sign * found.rho[rival];
    });
    order.given[rival] = estimate(given, 1, [rival](const Estimates& found) { return found.given[rival]; });
  }
  order.given_data = estimate(given, 1, [](const Estimates& found) { return found.given_data; });
  order.given_all = estimate(given, 1, [](const Estimates& found) { return found.given_all; });
  return order;
}

/// What is summed in a bin.
struct BinSums {
  double pairs = 0, place = 0, value = 0, hit = 0, gain = 0;
  BinSums& operator+=(const BinSums& other) {
    pairs += other.pairs, place += other.place, value += other.value, hit += other.hit, gain += other.gain;
    return *this;
  }
};

/// Users of all seeds in bins of equal width by their place, so that equal values stay together.
std::vector<ErrorBin> bins_of(const RankedUsers& users, std::size_t quantity, std::span<const std::size_t> group,
                              std::size_t groups, const ErrorOrderOptions& options, const std::string& no_interval) {
  const auto bins = static_cast<std::size_t>(options.bins);
  const auto count = static_cast<double>(users.target.size());
  std::vector<std::vector<BinSums>> sums(bins, std::vector<BinSums>(std::max<std::size_t>(groups, 1)));
  for (std::size_t seed = 0; seed < users.seeds.size(); ++seed) {
    const std::span<const double> values = quantity_of(users, quantity, seed);
    const std::vector<double> ranks = average_ranks(values);
    for (std::size_t user = 0; user < values.size(); ++user) {
      const double place = ranks[user] - 0.5, rank = users.rank[seed][user];  // half numbers, whose sums are exact
      const auto bin = std::min(bins - 1, static_cast<std::size_t>(place * static_cast<double>(bins) / count));
      sums[bin][group[user]] += {1, place, values[user], hit_at_10.value_at(rank), gain_at_10.value_at(rank)};
    }
  }
  std::vector<ErrorBin> found;
  for (const std::vector<BinSums>& group_sums : sums) {
    BinSums all;
    for (const BinSums& one : group_sums) all += one;
    if (all.pairs == 0) continue;
    const auto entering =
        static_cast<std::size_t>(std::ranges::count_if(group_sums, [](const BinSums& one) { return one.pairs > 0; }));
    const std::string few = too_few_of_part(static_cast<std::size_t>(all.pairs) / users.seeds.size());
    const auto interval = [&](double BinSums::*metric) {
      if (!no_interval.empty() || !few.empty()) return Maybe<Interval>::none(no_interval.empty() ? few : no_interval);
      // Where nothing was found, or everything, users do not show how far a share can move.
      const double share = all.*metric / all.pairs;
      if (share == 0 || share == 1) return Maybe<Interval>::none("it is the same for every user");
      std::vector<double> without;
      without.reserve(group_sums.size());
      for (const BinSums& one : group_sums)
        without.push_back(all.pairs > one.pairs ? (all.*metric - one.*metric) / (all.pairs - one.pairs) : no_value);
      return left_out_interval(share, without, 0, 1, entering);
    };
    found.push_back({all.place / (count * all.pairs), all.value / all.pairs, static_cast<std::size_t>(all.pairs),
                     all.hit / all.pairs, all.gain / all.pairs, interval(&BinSums::hit), interval(&BinSums::gain)});
  }
  return found;
}

void check_users(const RankedUsers& users, const ErrorOrderOptions& options) {
  const std::size_t count = users.target.size(), seeds = users.seeds.size();
  ASSERT(seeds > 0 && users.rank.size() == seeds && users.precision.size() == seeds && users.confidence.size() == seeds,
         "error order: {} seeds", seeds);
  CHECK(count > 0, "{}: its test has no user", printable(users.arm, 60));
  CHECK(static_cast<std::size_t>(options.bins) <= count, "--bins: {} bins of {} users; give at most as many",
        options.bins, count);
  const auto check_values = [&](std::span<const double> values) {
    ASSERT(values.size() == count, "error order: {} values for {} users", values.size(), count);
    CHECK(std::ranges::all_of(values, [](double value) { return std::isfinite(value); }),
          "{}: a value of a user is NaN or infinite", printable(users.arm, 60));
  };
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    check_values(users.rank[seed]);
    for (std::size_t q = 0; q < error_quantities; ++q) check_values(quantity_of(users, q, seed));
  }
}

OrderedJson to_json(const ErrorOrder& order) {
  OrderedJson json = OrderedJson::object();
  for (std::size_t q = 0; q < error_quantities; ++q) {
    OrderedJson& entry = json[std::string(error_quantity_keys[q])];
    entry["rho"] = to_json(order.rho[q]);
    if (q == precision) {
      entry["partial_rho_given_data"] = to_json(order.given_data);
      entry["partial_rho_given_all"] = to_json(order.given_all);
    } else {
      entry["precision_less_size"] = to_json(order.difference[q]);
      entry["partial_rho_of_precision"] = to_json(order.given[q]);
    }
  }
  return json;
}

}  // namespace

ErrorOrderReading error_order(const RankedUsers& users, const ErrorOrderOptions& options) {
  check(options);
  check_users(users, options);
  const std::size_t count = users.target.size(), seeds = users.seeds.size();
  std::vector<std::int64_t> different = users.target;
  std::ranges::sort(different);
  different.erase(std::unique(different.begin(), different.end()), different.end());
  const std::string no_interval =
      count < fewest_ordered_users                ? fmt::format("fewer than {} users", fewest_ordered_users)
      : different.size() < fewest_ordered_targets ? fmt::format("fewer than {} test items", fewest_ordered_targets)
                                                  : std::string();
  const std::size_t groups =
      no_interval.empty() ? std::min(different.size(), static_cast<std::size_t>(options.groups)) : 0;
  const std::vector<std::size_t> group = groups_by_target(users.target, std::max<std::size_t>(groups, 1), options.seed);

  AllEstimates all;
  all.all_users.resize(seeds);
  all.without.assign(seeds, std::vector<BothEstimates>(groups));
  on_threads(groups + 1, options.threads, [&](std::size_t task) {
    const Remaining rest(users, group, task < groups ? task : no_group);
    for (std::size_t seed = 0; seed < seeds; ++seed)
      (task < groups ? all.without[seed][task] : all.all_users[seed]) = rest.estimates_for(seed);
  });
  double at_bound = 0;
  for (const std::vector<double>& seed : users.precision)
    at_bound += static_cast<double>(
        std::ranges::count_if(seed, [&](double x) { return x >= users.most_precision * (1 - rounding_share); }));
  ErrorOrderReading reading{.arm = users.arm,
                            .seeds = users.seeds,
                            .users = count,
                            .targets = different.size(),
                            .groups = groups,
                            .at_bound = at_bound / static_cast<double>(count * seeds),
                            .most_precision = users.most_precision,
                            .by_rank = order_of(all, &BothEstimates::by_rank, no_interval),
                            .by_hit = order_of(all, &BothEstimates::by_hit, no_interval),
                            .bins = {},
                            .options = options};
  for (std::size_t q = 0; q < error_quantities; ++q)
    reading.bins[q] = bins_of(users, q, group, groups, options, no_interval);
  return reading;
}

OrderVerdict verdict_of(const SeedEstimate& rho) {
  if (!rho.interval) return OrderVerdict::undecided;
  if (rho.interval->low > 0) return OrderVerdict::orders;
  if (rho.interval->high < 0) return OrderVerdict::reverses;
  return rho.interval->high < min_order ? OrderVerdict::does_not : OrderVerdict::undecided;
}

void check(const ErrorOrderOptions& options) {
  CHECK(options.groups >= 20 && options.groups <= 10'000, "--groups: {}; must be 20 to 10000", options.groups);
  CHECK(options.bins >= 2 && options.bins <= 1000, "--bins: {}; must be 2 to 1000", options.bins);
}

OrderedJson to_json(const ErrorOrderReading& reading) {
  OrderedJson json = {{"arm", reading.arm},
                      {"seeds", reading.seeds},
                      {"users", reading.users},
                      {"test_items", reading.targets},
                      {"groups", reading.groups},
                      {"seed", reading.options.seed},
                      {"most_precision", reading.most_precision},
                      {"share_at_bound", reading.at_bound},
                      {"interval_over", reading.seeds.size() >= fewest_crossed_seeds ? "trainings and users" : "users"},
                      {"by_rank", to_json(reading.by_rank)},
                      {"by_hit_at_10", to_json(reading.by_hit)}};
  OrderedJson& bins = json["bins"] = OrderedJson::object();
  for (std::size_t q = 0; q < error_quantities; ++q) {
    OrderedJson& quantity_json = bins[std::string(error_quantity_keys[q])] = OrderedJson::array();
    for (const ErrorBin& bin : reading.bins[q]) {
      OrderedJson& entry = quantity_json.emplace_back(OrderedJson{{"percentile", bin.percentile},
                                                                  {"mean", bin.value},
                                                                  {"users", bin.users},
                                                                  {"hr@10", bin.hit},
                                                                  {"ndcg@10", bin.gain}});
      put(entry, "hr@10_interval", bin.hit_interval);
      put(entry, "ndcg@10_interval", bin.gain_interval);
    }
  }
  return json;
}

}  // namespace gainlens::analyses
