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

/// @param without_group  the value without each group of users. One that does not exist makes the interval missing
/// @param least, most    bounds of the quantity
Missing interval_of(double value, std::span<const double> without_group, double least, double most) {
  if (without_group.empty()) return Missing::none(few_users);
  return left_out_interval(value, without_group, least, most);
}

Missing interval_of_rho(const Measured& rho, std::span<const double> without_group, std::size_t items) {
  if (!rho) return Missing::none(rho.reason());
  if (!without_group.empty() && items < fewest_frequency_items) return Missing::none(few_items);
  return interval_of(*rho, without_group, -1, 1);
}

/// [user] the group of each: groups are random, and as large as each other or smaller by one.
std::vector<std::size_t> groups_of_users(std::size_t users, std::size_t groups, std::uint64_t seed) {
  std::vector<std::size_t> group(users);
  for (std::size_t user = 0; user < users; ++user) group[user] = user % groups;
  Random(seed).shuffle(group);
  return group;
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
std::vector<double> mean_of_seeds(std::span<const FrequencyCorrelation> seeds,
                                  std::vector<double> FrequencyCorrelation::*without_group) {
  std::vector<double> sum = seeds.front().*without_group;
  for (const FrequencyCorrelation& seed : seeds.subspan(1)) {
    const std::vector<double>& next = seed.*without_group;
    if (next.empty() || sum.empty()) return {};
    ASSERT(next.size() == sum.size(), "seeds of {} and {} groups", sum.size(), next.size());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += next[i];
  }
  for (double& value : sum) value /= static_cast<double>(seeds.size());
  return sum;
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
  const std::vector<std::size_t> group = groups_of_users(users, std::max<std::size_t>(groups, 1), options.seed);
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

  std::vector<std::vector<std::vector<double>>> of_bins(quantities.size());  // [quantity][bin][group]
  for (std::size_t q = 0; q < quantities.size(); ++q) {
    results[q].without_group.resize(groups);
    results[q].partial_without_group.resize(groups);
    of_bins[q].assign(binned.size(), std::vector<double>(groups));
  }
  on_threads(groups, options.threads, [&](std::size_t without) {
    const ItemMeans rest = all.means(group, without);
    const RanksOfItems rest_ranks(rest);
    for (std::size_t q = 0; q < quantities.size(); ++q) {
      const ItemCorrelations found = rest_ranks.of(rest.quantity[q]);
      results[q].without_group[without] = found.rho;
      results[q].partial_without_group[without] = found.partial;
      const std::vector<double> in_bins = bin_means(rest, q, results[q].bins, bin_of);
      for (std::size_t bin = 0; bin < in_bins.size(); ++bin) of_bins[q][bin][without] = in_bins[bin];
    }
  });
  constexpr double infinite = std::numeric_limits<double>::infinity();
  for (std::size_t q = 0; q < quantities.size(); ++q) {
    FrequencyCorrelation& result = results[q];
    result.interval = interval_of_rho(result.rho, result.without_group, result.items);
    result.partial_interval = interval_of_rho(result.partial, result.partial_without_group, result.items);
    for (std::size_t bin = 0; bin < result.bins.size(); ++bin)
      result.bins[bin].interval = interval_of(result.bins[bin].mean, of_bins[q][bin], -infinite, infinite);
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
  found.interval = interval_of_rho(found.rho, mean_of_seeds(seeds, &FrequencyCorrelation::without_group), items);
  found.partial_interval =
      interval_of_rho(found.partial, mean_of_seeds(seeds, &FrequencyCorrelation::partial_without_group), items);
  return found;
}

FrequencyDifference difference_to(std::span<const FrequencyCorrelation> model,
                                  std::span<const FrequencyCorrelation> placebo) {
  ASSERT(!model.empty() && !placebo.empty(), "frequency: no seed");
  const Measured of_model = mean_of_all(model, &FrequencyCorrelation::rho),
                 of_placebo = mean_of_all(placebo, &FrequencyCorrelation::rho);
  if (!of_model || !of_placebo) {
    const std::string reason = !of_model ? of_model.reason() : "of the placebo: " + of_placebo.reason();
    return {Measured::none(reason), Missing::none(reason)};
  }
  const double value = *of_model - *of_placebo;
  std::vector<double> differences = mean_of_seeds(model, &FrequencyCorrelation::without_group);
  const std::vector<double> less = mean_of_seeds(placebo, &FrequencyCorrelation::without_group);
  ASSERT(differences.size() == less.size(), "a model of {} groups, a placebo of {}", differences.size(), less.size());
  for (std::size_t i = 0; i < differences.size(); ++i) differences[i] -= less[i];
  if (!differences.empty() && model.front().items < fewest_frequency_items) return {value, Missing::none(few_items)};
  return {value, interval_of(value, differences, -2, 2)};
}

void check(const FrequencyOptions& options) {
  CHECK(options.groups >= 20 && options.groups <= 10'000, "--groups: {}; must be 20 to 10000", options.groups);
  CHECK(options.bins >= 2 && options.bins <= 1000, "--bins: {}; must be 2 to 1000", options.bins);
}

}  // namespace gainlens::analyses
