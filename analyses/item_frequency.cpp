#include "analyses/item_frequency.h"

#include "analyses/statistics.h"
#include "core/check.h"
#include "core/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace gainlens::analyses {
namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();
/// Below it, 1 - r^2 is rounding: a variable that another one determines.
constexpr double determined = 1e-12;

/// Means of items over the positions of users, each user counted as often as it was drawn.
struct ItemMeans {
  std::vector<double> value, count, place, length;  // [item with a position]
};

/// The positions with what their means are taken of. An item's means are those of the offsets from its first position,
/// so that equal values have an equal mean, bit by bit.
class Positions {
 public:
  Positions(const FilteredPositions& given, std::span<const double> values, std::span<const double> counts)
      : given_(given), values_(values), counts_(counts), first_(counts.size(), no_position) {
    for (std::size_t i = 0; i < given.item.size(); ++i) {
      if (first_[given.item[i]] == no_position) first_[given.item[i]] = i;
    }
  }

  /// @param drawn  [user] how often; empty: each once
  ItemMeans means(std::span<const std::uint32_t> drawn) const {
    std::vector<double> weight(counts_.size(), 0), value = weight, place = weight, length = weight;
    for (std::size_t user = 0; user < given_.users(); ++user) {
      const double times = drawn.empty() ? 1 : drawn[user];
      if (times == 0) continue;
      for (std::size_t i = given_.begin[user]; i < given_.begin[user + 1]; ++i) {
        const std::size_t item = given_.item[i], first = first_[item];
        weight[item] += times;
        value[item] += times * (values_[i] - values_[first]);
        place[item] += times * given_.place[i];
        length[item] += times * given_.length[i];
      }
    }
    ItemMeans means;
    for (std::size_t item = 0; item < counts_.size(); ++item) {
      if (weight[item] == 0) continue;
      means.value.push_back(values_[first_[item]] + value[item] / weight[item]);
      means.place.push_back(place[item] / weight[item]);
      means.length.push_back(length[item] / weight[item]);
      means.count.push_back(counts_[item]);
    }
    return means;
  }

 private:
  static constexpr std::size_t no_position = std::numeric_limits<std::size_t>::max();
  const FilteredPositions& given_;
  std::span<const double> values_, counts_;
  std::vector<std::size_t> first_;  // [item] its first position
};

/// Pearson's correlation of ranks; NaN if one side is constant.
double correlation_of(std::span<const double> x, std::span<const double> y) {
  const double mean_x = mean(x), mean_y = mean(y);
  double xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  return xx > 0 && yy > 0 ? std::clamp(xy / std::sqrt(xx * yy), -1.0, 1.0) : no_value;
}

/// The correlation of two variables without what a third one explains of both.
double without_third(double of_both, double x_and_third, double y_and_third) {
  const double rest = (1 - x_and_third * x_and_third) * (1 - y_and_third * y_and_third);
  return rest > determined ? std::clamp((of_both - x_and_third * y_and_third) / std::sqrt(rest), -1.0, 1.0) : no_value;
}

struct RankCorrelations {
  double rho, partial;  // NaN where they do not exist
};

RankCorrelations rank_correlations(const ItemMeans& means) {
  const std::vector<double> value = average_ranks(means.value), count = average_ranks(means.count),
                            place = average_ranks(means.place), length = average_ranks(means.length);
  const double rho = correlation_of(value, count);
  double of_length = correlation_of(place, length);
  RankCorrelations found{rho, rho};
  double value_place = correlation_of(value, place), count_place = correlation_of(count, place);
  double value_length = correlation_of(value, length), count_length = correlation_of(count, length);
  if (!std::isnan(value_place) && !std::isnan(count_place)) {
    found.partial = without_third(found.partial, value_place, count_place);
    if (!std::isnan(value_length)) {
      value_length = without_third(value_length, value_place, of_length);
      count_length = without_third(count_length, count_place, of_length);
      if (std::isnan(value_length)) return found;  // the place determines the length
    }
  }
  if (!std::isnan(value_length) && !std::isnan(count_length))
    found.partial = without_third(found.partial, value_length, count_length);
  return found;
}

/// Items from rare to frequent, in groups of nearly equal numbers. Items of one count stay together.
std::vector<std::vector<std::size_t>> bins_of(const std::vector<double>& counts, std::size_t bins) {
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return counts[i]; });
  std::vector<std::vector<std::size_t>> found;
  for (std::size_t i = 0; i < order.size();) {
    const std::size_t wanted = (found.size() + 1) * order.size() / bins;
    std::vector<std::size_t>& bin = found.emplace_back();
    do {
      const double count = counts[order[i]];
      for (; i < order.size() && counts[order[i]] == count; ++i) bin.push_back(order[i]);
    } while (i < order.size() && i < wanted);
  }
  return found;
}

double spread_of(std::span<const double> values) {
  const double centre = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - centre) * (value - centre);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

/// The estimate with the spread of its resamples. Resamples that have no value make it missing.
Maybe<Interval> interval_of(double value, std::span<const double> resampled, std::size_t users) {
  if (std::isnan(value)) return Maybe<Interval>::none("there is no estimate");
  const bool all = std::ranges::none_of(resampled, [](double x) { return std::isnan(x); });
  if (!all) return Maybe<Interval>::none("some resamples of the users have no value");
  const double error = spread_of(resampled);
  if (error == 0) return Interval{value, value};
  return student_interval({value, error, static_cast<double>(users - 1)});
}

/// Users drawn with replacement, as many as there are.
std::vector<std::uint32_t> drawn_users(Random& random, std::size_t users) {
  std::vector<std::uint32_t> drawn(users, 0);
  for (std::size_t i = 0; i < users; ++i) ++drawn[static_cast<std::size_t>(random.below(users))];
  return drawn;
}

void check_positions(const FilteredPositions& positions, std::span<const double> values, std::size_t items) {
  CHECK(!positions.begin.empty() && positions.begin.back() == positions.item.size() &&
            values.size() == positions.item.size() && positions.place.size() == positions.item.size() &&
            positions.length.size() == positions.item.size(),
        "frequency: positions, places, lengths and values of different numbers");
  CHECK(std::ranges::all_of(positions.item, [&](std::size_t item) { return item < items; }),
        "frequency: a position holds an item that has no training count");
  CHECK(std::ranges::all_of(values, [](double value) { return std::isfinite(value); }),
        "frequency: a value is NaN or infinite");
}

/// Means of the bins of all items, by the items that a resample has.
std::vector<double> bin_means(const ItemMeans& means, const std::vector<FrequencyBin>& bins) {
  std::vector<double> sums(bins.size(), 0), items(bins.size(), 0);
  for (std::size_t i = 0; i < means.value.size(); ++i) {
    const auto bin = std::ranges::upper_bound(bins, means.count[i], {}, &FrequencyBin::fewest) - bins.begin() - 1;
    const auto place = static_cast<std::size_t>(bin);
    // Offsets from the first value of the bin: equal values have an equal mean.
    sums[place] += means.value[i] - bins[place].mean;
    items[place] += 1;
  }
  for (std::size_t bin = 0; bin < bins.size(); ++bin)
    sums[bin] = items[bin] > 0 ? bins[bin].mean + sums[bin] / items[bin] : no_value;
  return sums;
}

}  // namespace

FrequencyCorrelation frequency_correlation(const FilteredPositions& positions, std::span<const double> values,
                                           std::span<const double> counts, const FrequencyOptions& options) {
  check(options);
  check_positions(positions, values, counts.size());
  const Positions all(positions, values, counts);
  const ItemMeans means = all.means({});
  const Correlation naive = correlation(means.value, means.count, {"the quantity", "the training count"});
  const RankCorrelations found = rank_correlations(means);
  FrequencyCorrelation result{.items = means.value.size(),
                              .rho = naive.spearman,
                              .naive_p = naive.spearman_naive_p,
                              .interval = Maybe<Interval>::none("fewer than 30 users"),
                              .partial = Measured::none("place and length determine one of the two"),
                              .partial_interval = Maybe<Interval>::none("fewer than 30 users"),
                              .bins = {},
                              .resampled = {}};
  if (!std::isnan(found.partial)) result.partial = found.partial;
  if (!naive.spearman) result.partial = naive.spearman;
  for (const std::vector<std::size_t>& bin : bins_of(means.count, options.bins)) {
    double sum = 0, of_counts = 0;
    for (const std::size_t i : bin) {
      sum += means.value[i] - means.value[bin.front()];
      of_counts += means.count[i];
    }
    const auto size = static_cast<double>(bin.size());
    result.bins.push_back({bin.size(), means.count[bin.front()], means.count[bin.back()], of_counts / size,
                           means.value[bin.front()] + sum / size, Maybe<Interval>::none("fewer than 30 users")});
  }
  if (positions.users() < fewest_frequency_users || !result.rho) return result;

  Random random(options.seed);
  std::vector<double> partial;
  std::vector<std::vector<double>> of_bins(result.bins.size());
  for (std::int64_t i = 0; i < options.resamples; ++i) {
    const ItemMeans drawn = all.means(drawn_users(random, positions.users()));
    const RankCorrelations resampled = rank_correlations(drawn);
    result.resampled.push_back(resampled.rho);
    partial.push_back(resampled.partial);
    const std::vector<double> in_bins = bin_means(drawn, result.bins);
    for (std::size_t bin = 0; bin < in_bins.size(); ++bin) of_bins[bin].push_back(in_bins[bin]);
  }
  result.interval = interval_of(*result.rho, result.resampled, positions.users());
  if (result.partial) result.partial_interval = interval_of(*result.partial, partial, positions.users());
  for (std::size_t bin = 0; bin < of_bins.size(); ++bin)
    result.bins[bin].interval = interval_of(result.bins[bin].mean, of_bins[bin], positions.users());
  return result;
}

FrequencyDifference difference_to(const FrequencyCorrelation& model, const FrequencyCorrelation& placebo) {
  if (!model.rho || !placebo.rho) {
    const std::string reason = !model.rho ? model.rho.reason() : "of the placebo: " + placebo.rho.reason();
    return {Measured::none(reason), Maybe<Interval>::none(reason)};
  }
  const double value = *model.rho - *placebo.rho;
  if (model.resampled.empty() || model.resampled.size() != placebo.resampled.size())
    return {value, Maybe<Interval>::none("fewer than 30 users")};
  std::vector<double> differences(model.resampled.size());
  for (std::size_t i = 0; i < differences.size(); ++i) differences[i] = model.resampled[i] - placebo.resampled[i];
  // Many users: the quantile is the normal one.
  return {value, interval_of(value, differences, std::numeric_limits<std::uint32_t>::max())};
}

void check(const FrequencyOptions& options) {
  CHECK(options.resamples >= 39 && options.resamples <= 100'000, "--resamples: {}; must be 39 to 100000",
        options.resamples);
  CHECK(options.bins >= 2 && options.bins <= 1000, "--bins: {}; must be 2 to 1000", options.bins);
}

}  // namespace gainlens::analyses
