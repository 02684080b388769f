#include "analyses/seed_estimate.h"

#include "analyses/crossed_estimate.h"
#include "analyses/rank_correlation.h"
#include "analyses/statistics.h"

#include <algorithm>
#include <cmath>

namespace gainlens::analyses {
namespace {

/// Seeds and groups of users, crossed.
Maybe<Interval> crossed_interval(double value, const Replicates& found, double least, double most) {
  const std::size_t groups = found.without.front().size();
  const double scale = std::sqrt(static_cast<double>(groups - 1) / static_cast<double>(groups));
  std::vector<double> influence;
  for (const std::vector<double>& seed : found.without) {
    if (std::ranges::any_of(seed, [](double x) { return std::isnan(x); }))
      return Maybe<Interval>::none("it does not exist without some of the users");
    const double middle = mean(seed);
    for (const double without : seed) influence.push_back(scale * (without - middle));
  }
  const auto degrees = static_cast<double>((found.entering > 0 ? found.entering : groups) - 1);
  const Maybe<Interval> interval =
      stated_interval(crossed_estimate(value, found.values, influence, degrees, 1, "group of users"));
  if (!interval) return interval;
  return Interval{std::max(interval->low, least), std::min(interval->high, most)};
}

}  // namespace

SeedEstimate over_seeds(const Replicates& found, const std::string& missing, const std::string& no_interval,
                        double least, double most) {
  SeedEstimate all;
  const std::size_t seeds = found.values.size();
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    const double value = found.values[seed];
    all.seeds.push_back(std::isnan(value) ? Measured::none(missing) : Measured(value));
    all.seed_intervals.push_back(std::isnan(value) ? Maybe<Interval>::none(missing)
                                 : !no_interval.empty()
                                     ? Maybe<Interval>::none(no_interval)
                                     : left_out_interval(value, found.without[seed], least, most, found.entering));
  }
  if (std::ranges::any_of(found.values, [](double value) { return std::isnan(value); })) {
    all.value = all.deviation = Measured::none(missing);
    all.interval = Maybe<Interval>::none(missing);
    return all;
  }
  const double value = mean(found.values);
  all.value = value;
  all.deviation = Measured::none("one seed alone");
  if (seeds > 1) {
    const auto count = static_cast<double>(seeds);
    all.deviation = std::sqrt(population_variance(found.values) * count / (count - 1));
  }
  if (!no_interval.empty()) {
    all.interval = Maybe<Interval>::none(no_interval);
  } else if (seeds >= fewest_crossed_seeds) {
    all.interval = crossed_interval(value, found, least, most);
  } else {
    std::vector<double> without(found.without.front().size(), 0);
    for (const std::vector<double>& seed : found.without) {
      for (std::size_t group = 0; group < without.size(); ++group)
        without[group] += seed[group] / static_cast<double>(seeds);
    }
    all.interval = left_out_interval(value, without, least, most, found.entering);
  }
  return all;
}

OrderedJson to_json(const SeedEstimate& estimate) {
  OrderedJson json = OrderedJson::object();
  put(json, "value", estimate.value);
  put(json, "interval", estimate.interval);
  put(json, "seed_deviation", estimate.deviation);
  json["seeds"] = OrderedJson::array();
  for (std::size_t seed = 0; seed < estimate.seeds.size(); ++seed) {
    OrderedJson& entry = json["seeds"].emplace_back(OrderedJson::object());
    put(entry, "value", estimate.seeds[seed]);
    put(entry, "interval", estimate.seed_intervals[seed]);
  }
  return json;
}

}  // namespace gainlens::analyses
