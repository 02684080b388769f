#include "analyses/item_frequency.h"

#include "analyses/on_threads.h"
#include "analyses/rank_correlation.h"
#include "analyses/statistics.h"
#include "core/check.h"
#include "core/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace gainlens::analyses {
namespace {

using Quantities = std::vector<std::span<const double>>;
using Missing = Maybe<Interval>;

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();
constexpr const char* few_users = "fewer than 30 users";
constexpr const char* few_items = "fewer than 50 items";

/// Means of items over the positions of some users.
struct ItemMeans {
  std::vector<std::size_t> item;              // with a position
  std::vector<double> count, place, length;   // [item of the list]
  std::vector<std::vector<double>> quantity;  // [quantity][item of the list]
};

/// The positions with what their means are taken of. An item's mean is taken of the offsets from its first position,
/// so that equal values have an equal mean, bit by bit.
class Positions {
 public:
  Positions(const ReadPositions& read, std::span<const double> counts, const Quantities& quantities)
      : read_(read), counts_(counts), quantities_(quantities), first_(counts.size(), no_position) {
    for (std::size_t i = 0; i < read.item.size(); ++i) {
      if (first_[read.item[i]] == no_position) first_[read.item[i]] = i;
    }
  }

  /// @param group  [user] of each
  /// @param without  this group of users
  ItemMeans means(std::span<const std::size_t> group, std::size_t without) const {
    const std::size_t items = counts_.size();
    std::vector<double> weight(items, 0), place(items, 0), length(items, 0);
    const auto for_each = [&](const auto& visit) {
      for (std::size_t user = 0; user < read_.users(); ++user) {
        if (group[user] == without) continue;
        for (std::size_t i = read_.begin[user]; i < read_.begin[user + 1]; ++i) visit(i);
      }
    };
    for_each([&](std::size_t i) {
      const std::size_t item = read_.item[i];
      weight[item] += 1;
      place[item] += read_.place[i];
      length[item] += read_.length[i];
    });
    ItemMeans means;
    for (std::size_t item = 0; item < items; ++item) {
      if (weight[item] == 0) continue;
      means.item.push_back(item);
      means.count.push_back(counts_[item]);
      means.place.push_back(place[item] / weight[item]);
      means.length.push_back(length[item] / weight[item]);
    }
    for (const std::span<const double> values : quantities_) {
      std::vector<double> sums(items, 0);
      for_each([&](std::size_t i) { sums[read_.item[i]] += values[i] - values[first_[read_.item[i]]]; });
      std::vector<double>& found = means.quantity.emplace_back();
      for (const std::size_t item : means.item) found.push_back(values[first_[item]] + sums[item] / weight[item]);
    }
    return means;
  }

 private:
  static constexpr std::size_t no_position = std::numeric_limits<std::size_t>::max();

  const ReadPositions& read_;
  std::span<const double> counts_;
  const Quantities& quantities_;
  std::vector<std::size_t> first_;  // [item] its first position
};

struct ItemCorrelations {
  double rho, partial;  // NaN where they do not exist
};

/// What all quantities share.
class RanksOfItems {
 public:
  explicit RanksOfItems(const ItemMeans& means) : count_(means.count), place_(means.place), length_(means.length) {}

  ItemCorrelations of(std::span<const double> quantity) const {
    const CentredRanks value(quantity);
    const CentredRanks* const variables[] = {&value, &count_, &place_, &length_};
    const RankCorrelations found{variables};
    constexpr std::size_t given[] = {2, 3};
    return {found.rho(0, 1), found.partial(0, 1, given)};
  }

 private:
  CentredRanks count_, place_, length_;
};

/// @param values  at least one
bool differ_by_rounding(std::span<const double> values) {
  double scale = 0;
  for (const double value : values) scale = std::max(scale, std::abs(value));
  return alike(values, scale);
}

/// Items from rare to frequent, in groups of nearly equal numbers. Items of one count stay together.
/// @param counts  [item of the list]
std::vector<std::vector<std::size_t>> items_of_bins(const std::vector<double>& counts, std::size_t bins) {
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return counts[i]; });
  std::vector<std::vector<std::size_t>> found;
  for (std::size_t i = 0; i < order.size();) {
    const std::size_t left = bins - found.size();  // at least 1: the last group takes all that remains
    const std::size_t wanted = i + (order.size() - i + left - 1) / left;
    std::vector<std::size_t>& group = found.emplace_back();
    while (i < order.size() && (i < wanted || counts[order[i]] == counts[order[i - 1]])) group.push_back(order[i++]);
  }
  return found;
}

std::vector<FrequencyBin> bins_of(const ItemMeans& means, std::size_t quantity,
                                  const std::vector<std::vector<std::size_t>>& groups) {
  const std::vector<double>& values = means.quantity[quantity];
  std::vector<FrequencyBin> bins;
  for (const std::vector<std::size_t>& group : groups) {
    double sum = 0, counts = 0;
    for (const std::size_t i : group) {
      sum += values[i] - values[group.front()];  // equal values have an equal mean
      counts += means.count[i];
    }
    const auto size = static_cast<double>(group.size());
    bins.push_back({group.size(), means.count[group.front()], means.count[group.back()], counts / size,
                    values[group.front()] + sum / size, Missing::none(few_users)});
  }
  return bins;
}

/// Means of the bins by the items that some users have; NaN for a bin without one.
/// @param bin_of  [item]
std::vector<double> bin_means(const ItemMeans& means, std::size_t quantity, const std::vector<FrequencyBin>& bins,
                              const std::vector<std::size_t>& bin_of) {
  std::vector<double> sums(bins.size(), 0), items(bins.size(), 0);
  for (std::size_t i = 0; i < means.item.size(); ++i) {
    const std::size_t bin = bin_of[means.item[i]];
    sums[bin] += means.quantity[quantity][i] - bins[bin].mean;
    items[bin] += 1;
  }
  for (std::size_t bin = 0; bin < bins.size(); ++bin)
    sums[bin] = items[bin] > 0 ? bins[bin].mean + sums[bin] / items[bin] : no_value;
  return sums;
}

/// @param without      the value without each group. One that does not exist makes the interval missing
/// @param least, most  bounds of the quantity
Missing interval_of(double value, const LeftOut& without, double least, double most) {
  if (without.users.empty()) return Missing::none(few_users);
  return left_out_interval(value, without.users, without.items, least, most);
}

/// @param bound  of the size of rho
Missing interval_of_rho(const Measured& rho, const LeftOut& without, std::size_t items, double bound = 1) {
  if (!rho) return Missing::none(rho.reason());
  if (!without.users.empty() && items < fewest_frequency_items) return Missing::none(few_items);
  return interval_of(*rho, without, -bound, bound);
}

/// [unit] the group of each: groups are random, and as large as each other or smaller by one.
std::vector<std::size_t> random_groups(std::size_t units, std::size_t groups, Random random) {
  std::vector<std::size_t> group(units);
  for (std::size_t unit = 0; unit < units; ++unit) group[unit] = unit % groups;
  random.shuffle(group);
  return group;
}

/// The same items without one of their groups.
/// @param group  [item of the list]
ItemMeans without_items(const ItemMeans& means, std::span<const std::size_t> group, std::size_t without) {
  ItemMeans rest;
  rest.quantity.resize(means.quantity.size());
  for (std::size_t i = 0; i < means.item.size(); ++i) {
    if (group[i] == without) continue;
    rest.item.push_back(means.item[i]);
    rest.count.push_back(means.count[i]);
    rest.place.push_back(means.place[i]);
    rest.length.push_back(means.length[i]);
    for (std::size_t q = 0; q < means.quantity.size(); ++q) rest.quantity[q].push_back(means.quantity[q][i]);
  }
  return rest;
}

void check_positions(const ReadPositions& positions, std::size_t items, const Quantities& quantities) {
  const std::size_t count = positions.item.size();
  CHECK(!positions.begin.empty() && positions.begin.front() == 0 && positions.begin.back() == count &&
            std::ranges::is_sorted(positions.begin) && positions.place.size() == count &&
            positions.length.size() == count,
        "frequency: positions, places, lengths and users do not fit each other");
  CHECK(std::ranges::all_of(positions.item, [&](std::size_t item) { return item < items; }),
        "frequency: a position holds an item that has no training count");
  for (const std::span<const double> values : quantities) {
    CHECK(values.size() == count, "frequency: {} values for {} positions", values.size(), count);
    CHECK(std::ranges::all_of(values, [](double value) { return std::isfinite(value); }),
          "frequency: a value is NaN or infinite");
  }
}

/// The mean over seeds of the values without each group; empty if a seed has none.
std::vector<double> mean_of_seeds(std::span<const FrequencyCorrelation> seeds, LeftOut FrequencyCorrelation::*without,
                                  std::vector<double> LeftOut::*units) {
  std::vector<double> sum = seeds.front().*without.*units;
  for (const FrequencyCorrelation& seed : seeds.subspan(1)) {
    const std::vector<double>& next = seed.*without.*units;
    if (next.empty() || sum.empty()) return {};
    ASSERT(next.size() == sum.size(), "seeds of {} and {} groups", sum.size(), next.size());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += next[i];
  }
  for (double& value : sum) value /= static_cast<double>(seeds.size());
  return sum;
}

LeftOut mean_of_seeds(std::span<const FrequencyCorrelation> seeds, LeftOut FrequencyCorrelation::*without) {
  return {mean_of_seeds(seeds, without, &LeftOut::users), mean_of_seeds(seeds, without, &LeftOut::items)};
}

/// [group] Those of one less those of the other.
std::vector<double> differences(std::vector<double> of, const std::vector<double>& less) {
  ASSERT(of.size() == less.size(), "a model of {} groups, a placebo of {}", of.size(), less.size());
  for (std::size_t i = 0; i < of.size(); ++i) of[i] -= less[i];
  return of;
}

/// The mean of a quantity that all seeds have.
Measured mean_of_all(std::span<const FrequencyCorrelation> seeds, Measured FrequencyCorrelation::*quantity) {
  std::vector<double> values;
  for (const FrequencyCorrelation& seed : seeds) {
    if (!(seed.*quantity)) return seed.*quantity;
    values.push_back(*(seed.*quantity));
  }
  return mean(values);
}

}  // namespace

std::vector<FrequencyCorrelation> frequency_correlations(const ReadPositions& positions, std::span<const double> counts,
                                                         const Quantities& quantities,
                                                         const FrequencyOptions& options) {
  check(options);
  check_positions(positions, counts.size(), quantities);
  const std::size_t users = positions.users();
  const Positions all(positions, counts, quantities);
  const std::size_t groups =
      users < fewest_frequency_users ? 0 : std::min(users, static_cast<std::size_t>(options.groups));
  const std::vector<std::size_t> group = random_groups(users, std::max<std::size_t>(groups, 1), Random(options.seed));
  const ItemMeans means = all.means(group, group.size());  // without none
  const RanksOfItems ranks(means);
  const auto binned = items_of_bins(means.count, static_cast<std::size_t>(options.bins));
  std::vector<std::size_t> bin_of(counts.size(), 0);
  for (std::size_t bin = 0; bin < binned.size(); ++bin) {
    for (const std::size_t i : binned[bin]) bin_of[means.item[i]] = bin;
  }
  std::vector<FrequencyCorrelation> results(quantities.size());
  for (std::size_t q = 0; q < quantities.size(); ++q) {
    const Correlation naive = correlation(means.quantity[q], means.count, {"the quantity", "the training count"});
    FrequencyCorrelation& result = results[q];
    result.items = means.item.size();
    result.users = users;
    result.rho = naive.spearman;
    result.naive_p = naive.spearman_naive_p;
    if (naive.spearman && differ_by_rounding(means.quantity[q]))
      result.rho = result.naive_p = Measured::none("the quantity is constant up to rounding");
    result.bins = bins_of(means, q, binned);
    const double partial = ranks.of(means.quantity[q]).partial;
    result.partial = !result.rho           ? result.rho
                     : std::isnan(partial) ? Measured::none("place or length determines the quantity or the count")
                                           : Measured(partial);
  }

  const std::size_t item_groups =
      groups == 0 ? 0 : std::min(means.item.size(), static_cast<std::size_t>(options.groups));
  const std::vector<std::size_t> item_group =
      random_groups(means.item.size(), std::max<std::size_t>(item_groups, 1), Random(options.seed, 1));
  std::vector<std::vector<LeftOut>> left_out(quantities.size());  // [quantity][bin]
  for (std::size_t q = 0; q < quantities.size(); ++q) {
    const LeftOut empty{std::vector<double>(groups), std::vector<double>(item_groups)};
    results[q].without = results[q].partial_without = empty;
    left_out[q].assign(binned.size(), empty);
  }
  const auto leave_out = [&](const ItemMeans& rest, std::vector<double> LeftOut::*units, std::size_t without) {
    const RanksOfItems rest_ranks(rest);
    for (std::size_t q = 0; q < quantities.size(); ++q) {
      const ItemCorrelations found = rest_ranks.of(rest.quantity[q]);
      (results[q].without.*units)[without] = found.rho;
      (results[q].partial_without.*units)[without] = found.partial;
      const std::vector<double> in_bins = bin_means(rest, q, results[q].bins, bin_of);
      for (std::size_t bin = 0; bin < in_bins.size(); ++bin) (left_out[q][bin].*units)[without] = in_bins[bin];
    }
  };
  on_threads(groups, options.threads,
             [&](std::size_t without) { leave_out(all.means(group, without), &LeftOut::users, without); });
  on_threads(item_groups, options.threads, [&](std::size_t without) {
    leave_out(without_items(means, item_group, without), &LeftOut::items, without);
  });
  constexpr double infinite = std::numeric_limits<double>::infinity();
  for (std::size_t q = 0; q < quantities.size(); ++q) {
    FrequencyCorrelation& result = results[q];
    result.interval = interval_of_rho(result.rho, result.without, result.items);
    result.partial_interval = interval_of_rho(result.partial, result.partial_without, result.items);
    for (std::size_t bin = 0; bin < result.bins.size(); ++bin)
      result.bins[bin].interval = interval_of(result.bins[bin].mean, left_out[q][bin], -infinite, infinite);
  }
  return results;
}

SeedFrequency over_seeds(std::span<const FrequencyCorrelation> seeds) {
  ASSERT(!seeds.empty(), "frequency: no seed");
  SeedFrequency found;
  found.rho = mean_of_all(seeds, &FrequencyCorrelation::rho);
  found.partial = mean_of_all(seeds, &FrequencyCorrelation::partial);
  found.deviation = !found.rho ? found.rho : Measured::none("one seed alone");
  if (found.rho && seeds.size() > 1) {
    double squares = 0;
    for (const FrequencyCorrelation& seed : seeds) squares += (*seed.rho - *found.rho) * (*seed.rho - *found.rho);
    found.deviation = std::sqrt(squares / static_cast<double>(seeds.size() - 1));
  }
  const std::size_t items = seeds.front().items;
  found.interval = interval_of_rho(found.rho, mean_of_seeds(seeds, &FrequencyCorrelation::without), items);
  found.partial_interval =
      interval_of_rho(found.partial, mean_of_seeds(seeds, &FrequencyCorrelation::partial_without), items);
  return found;
}

FrequencyDifference difference_to(std::span<const FrequencyCorrelation> model,
                                  std::span<const FrequencyCorrelation> placebo) {
  ASSERT(!model.empty() && !placebo.empty(), "frequency: no seed");
  const Measured model_mean = mean_of_all(model, &FrequencyCorrelation::rho),
                 placebo_mean = mean_of_all(placebo, &FrequencyCorrelation::rho);
  if (!model_mean || !placebo_mean) {
    const std::string reason = !model_mean ? model_mean.reason() : "of the placebo: " + placebo_mean.reason();
    return {Measured::none(reason), Missing::none(reason)};
  }
  const double value = *model_mean - *placebo_mean;
  const LeftOut with = mean_of_seeds(model, &FrequencyCorrelation::without),
                less = mean_of_seeds(placebo, &FrequencyCorrelation::without);
  const LeftOut without{differences(with.users, less.users), differences(with.items, less.items)};
  return {value, interval_of_rho(value, without, model.front().items, 2)};
}

void check(const FrequencyOptions& options) {
  CHECK(options.groups >= 20 && options.groups <= 10'000, "--groups: {}; must be 20 to 10000", options.groups);
  CHECK(options.bins >= 2 && options.bins <= 1000, "--bins: {}; must be 2 to 1000", options.bins);
}

}  // namespace gainlens::analyses
