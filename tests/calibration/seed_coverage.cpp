#include "calibration/seed_coverage.h"
#include "analyses/recommender_comparison.h"

#include "analyses/gain_regression.h"
#include "analyses/permutation.h"
#include "analyses/pooled_data_sets.h"
#include "analyses/seed_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

namespace gainlens::testing {
namespace {

using analyses::GainScale;
using analyses::Interval;
using analyses::Maybe;
using analyses::Measured;
using analyses::PairedUnits;
using analyses::SignedGroup;

constexpr std::int64_t simulated_resamples = 399;

/// Simulations of a cell with a bootstrap, which takes most of the time.
std::int64_t most_bootstraps(std::size_t users) {
  return users > 5000 ? 100 : 250;
}

/// Counts the tests and intervals of each method of one cell of the table.
class CellCounter {
 public:
  explicit CellCounter(SeedCoverage cell) : cell_(std::move(cell)) {}

  void add(const std::string& method, bool stated, const Measured& p, const Maybe<Interval>& interval, double truth) {
    auto [found, fresh] = counts_.try_emplace(method);
    if (fresh) methods_.push_back(method);
    Counts& counts = found->second;
    counts.stated = stated;
    ++counts.simulations;
    counts.tested += p ? 1 : 0;
    counts.rejected += p && *p <= analyses::significance ? 1 : 0;
    counts.rejected_at_1 += p && *p <= 0.01 ? 1 : 0;
    counts.rejected_at_0_1 += p && *p <= 0.001 ? 1 : 0;
    if (!interval) return;
    ++counts.intervals;
    counts.held += interval->low <= truth && truth <= interval->high ? 1 : 0;
  }
  void add(const std::string& method, bool stated, const Measured& p) {
    add(method, stated, p, Maybe<Interval>::none("a test alone"), 0);
  }
  void add(const std::string& method, bool stated, const Maybe<analyses::CrossedEstimate>& gain, double truth) {
    if (!gain) return add(method, stated, Measured::none(gain.reason()));
    const bool level = static_cast<bool>(gain->interval);  // two seeds have a range without one
    add(method, stated && level, gain->p, level ? gain->interval : gain->range, truth);
  }
  void add(const Maybe<analyses::SeedUnitBootstrap>& gain, const std::string& scale, double truth) {
    if (gain) add("seed x user bootstrap, " + scale, gain->is_95, gain->p, gain->range, truth);
  }

  std::vector<SeedCoverage> rows() const {
    std::vector<SeedCoverage> rows;
    for (const std::string& method : methods_) {
      const Counts& counts = counts_.at(method);
      rows.push_back(cell_);
      SeedCoverage& row = rows.back();
      row.method = method;
      row.stated = counts.stated;
      row.simulations = static_cast<std::int64_t>(counts.simulations);
      row.tested = counts.tested / counts.simulations;
      row.rejected = counts.rejected / counts.simulations;
      row.rejected_at_1 = counts.rejected_at_1 / counts.simulations;
      row.rejected_at_0_1 = counts.rejected_at_0_1 / counts.simulations;
      row.covered = counts.intervals > 0 ? counts.held / counts.intervals : std::numeric_limits<double>::quiet_NaN();
    }
    return rows;
  }

 private:
  struct Counts {
    bool stated = false;
    double simulations = 0, tested = 0, rejected = 0, rejected_at_1 = 0, rejected_at_0_1 = 0, intervals = 0, held = 0;
  };
  SeedCoverage cell_;
  std::vector<std::string> methods_;
  std::map<std::string, Counts> counts_;
};

double own_gain(const RecommenderCase& what, Random& random) {
  return random.bits() & 1 ? what.own_gains : -what.own_gains;
}

/// Target items, of which a few are frequent. About three users share an item.
std::vector<std::size_t> draw_targets(std::size_t users, Random& random) {
  std::vector<std::size_t> targets;
  for (std::size_t user = 0; user < users; ++user) {
    const double u = random.uniform();
    targets.push_back(static_cast<std::size_t>(u * u * static_cast<double>(users) / 2));
  }
  return targets;
}

/// Training count of an item: the median is 1, one item of ten has 6 or more, one of 100 has 46 or more.
std::int64_t draw_item_count(Random& random) {
  return static_cast<std::int64_t>(std::min(150.0, 1.2 * std::pow(1 - random.uniform(), -0.8)) - 1);
}

/// Target items, each as likely as it is frequent in training, as in real data: few items have many users.
std::vector<std::size_t> popular_targets(const std::vector<std::int64_t>& item_count, std::size_t users,
                                         Random& random) {
  std::vector<double> up_to;
  double sum = 0;
  for (const std::int64_t count : item_count) up_to.push_back(sum += static_cast<double>(count) + 0.6);
  std::vector<std::size_t> targets;
  for (std::size_t user = 0; user < users; ++user) {
    const auto found = std::upper_bound(up_to.begin(), up_to.end(), random.uniform() * sum);
    targets.push_back(static_cast<std::size_t>(std::min(found, up_to.end() - 1) - up_to.begin()));
  }
  return targets;
}

struct Population {
  std::vector<SimulatedUser> users;
  std::vector<std::size_t> targets;  // empty if users have their own gains
};

/// The first users have rare targets.
std::size_t rare_users(std::size_t users) {
  return static_cast<std::size_t>(rare_share * static_cast<double>(users));
}

Population draw_users(const RecommenderCase& what, std::size_t count, double rare_gain, double popular_gain,
                      Random& random) {
  Population population;
  std::vector<double> of_item;
  if (what.by_item) {
    population.targets = draw_targets(count, random);
    for (std::size_t item = 0; item < count; ++item) of_item.push_back(own_gain(what, random));
  }
  const std::size_t rare = rare_users(count);
  for (std::size_t user = 0; user < count; ++user) {
    const double own = what.by_item ? of_item[population.targets[user]] : own_gain(what, random);
    population.users.push_back(
        {(user < rare ? rare_items : popular_items).draw(random), own + (user < rare ? rare_gain : popular_gain)});
  }
  return population;
}

/// True difference and log ratio of users with these laws, each with its share of the users and its gain.
struct Truth {
  double baseline = 0, difference = 0;

  Truth& add(double share, const RateLaw& law, double gain) {
    baseline += share * law.mean();
    difference += share * gain * law.mean_spread();
    return *this;
  }
  double log_ratio() const { return std::log1p(difference / baseline); }
};

SignedGroup users_between(std::size_t first, std::size_t end, double sign) {
  SignedGroup group{std::vector<std::size_t>(end - first), sign};
  std::iota(group.units.begin(), group.units.end(), first);
  return group;
}

Maybe<Interval> interval_of(const Maybe<analyses::RandomEffects>& effects) {
  return effects ? Maybe<Interval>(effects->interval) : Maybe<Interval>::none(effects.reason());
}

}  // namespace

const std::vector<RecommenderCase>& recommender_cases() {
  static const std::vector<RecommenderCase> cases = {{"equal users"},
                                                     {"own gains", 0.7},
                                                     {"strong seeds", 0, false, {0.05, 0.05, 0.3}},
                                                     {"own gains of items", 0.7, true}};
  return cases;
}

std::vector<SeedCoverage> cover_gains(const RecommenderCase& what, std::size_t seeds, std::size_t users, double effect,
                                      std::int64_t simulations, std::uint64_t seed) {
  CellCounter counter({"gain", "", false, what.name, seeds, users, effect, simulations, 0, 0, 0});
  const Truth truth = Truth().add(rare_share, rare_items, effect).add(1 - rare_share, popular_items, effect);
  for (std::int64_t i = 0; i < simulations; ++i) {
    Random random(seed, static_cast<std::uint64_t>(i));
    const Population population = draw_users(what, users, effect, effect, random);
    const PairedUnits runs = observe(population.users, seeds, what.noise, random);
    const auto over_seeds = analyses::compare_seeds(seed_means(runs));
    const std::array all = {all_units(runs)};
    counter.add("paired t", false, over_seeds.naive_p, over_seeds.interval, truth.difference);
    counter.add("sign test", false, over_seeds.signs.p);
    counter.add("signed ranks", false, over_seeds.ranks.p);
    counter.add("sign flips", false, over_seeds.flips.p);
    const bool apart = !what.by_item;  // users of one item are no independent units
    counter.add("crossed, difference", apart, crossed_gain(runs, all, GainScale::difference), truth.difference);
    counter.add("crossed, log ratio", apart, crossed_gain(runs, all, GainScale::log_ratio), truth.log_ratio());
    if (what.by_item) {
      counter.add("crossed by item, difference", true,
                  crossed_gain(runs, all, GainScale::difference, population.targets), truth.difference);
      counter.add("crossed by item, log ratio", true, crossed_gain(runs, all, GainScale::log_ratio, population.targets),
                  truth.log_ratio());
      continue;
    }
    if (i >= most_bootstraps(users)) continue;
    const auto bootstrap = bootstrap_gain(runs, all, {simulated_resamples, static_cast<std::uint64_t>(i)});
    counter.add(bootstrap.difference, "difference", truth.difference);
    counter.add(bootstrap.log_ratio, "log ratio", truth.log_ratio());
  }
  return counter.rows();
}

std::vector<SeedCoverage> cover_interaction(const RecommenderCase& what, std::size_t seeds, std::size_t users,
                                            double effect, std::int64_t simulations, std::uint64_t seed) {
  CellCounter counter({"rare minus popular", "", false, what.name, seeds, users, effect, simulations, 0, 0, 0});
  const Truth truth = Truth().add(1, rare_items, effect);
  const std::size_t rare = rare_users(users);
  for (std::int64_t i = 0; i < simulations; ++i) {
    Random random(seed, static_cast<std::uint64_t>(i));
    const PairedUnits runs = observe(draw_users(what, users, effect, 0, random).users, seeds, what.noise, random);
    const std::array contrast = {users_between(0, rare, 1), users_between(rare, users, -1)};
    counter.add("crossed, difference", true, crossed_gain(runs, contrast, GainScale::difference), truth.difference);
    counter.add("crossed, log ratio", true, crossed_gain(runs, contrast, GainScale::log_ratio), truth.log_ratio());
    if (i >= most_bootstraps(users)) continue;
    const auto bootstrap = bootstrap_gain(runs, contrast, {simulated_resamples, static_cast<std::uint64_t>(i)});
    counter.add(bootstrap.difference, "difference", truth.difference);
    counter.add(bootstrap.log_ratio, "log ratio", truth.log_ratio());
  }
  return counter.rows();
}

std::vector<SeedCoverage> cover_data_sets(const RecommenderCase& what, std::size_t seeds, std::size_t users,
                                          double effect, double spread, std::int64_t simulations, std::uint64_t seed) {
  const std::string name = what.name + (spread > 0 ? ", data sets differ" : "");
  CellCounter counter({"data sets", "", false, name, seeds, users, effect, simulations, 0, 0, 0});
  // The mean over data sets of the log ratio of each, whose own gain is one of two numbers.
  const auto log_ratio = [](double gain) {
    return Truth().add(rare_share, rare_items, gain).add(1 - rare_share, popular_items, gain).log_ratio();
  };
  const double truth = (log_ratio(effect + spread) + log_ratio(effect - spread)) / 2;
  for (std::int64_t i = 0; i < simulations; ++i) {
    Random random(seed, static_cast<std::uint64_t>(i));
    std::vector<analyses::DataSetGain> sets;
    for (std::size_t set = 0; set < 6; ++set) {
      const double gain = effect + (random.bits() & 1 ? spread : -spread);
      const std::size_t count = users / 2 + users * set / 5;
      const PairedUnits runs = observe(draw_users(what, count, gain, gain, random).users, seeds, what.noise, random);
      const analyses::SeedMeans means = seed_means(runs);
      analyses::DataSetGain one{std::to_string(set),
                                {},
                                analyses::compare_seeds(means).naive_p,
                                crossed_gain(runs, std::array{all_units(runs)}, GainScale::log_ratio)};
      for (std::size_t s = 0; s < seeds; ++s) {
        one.runs.seeds.push_back(s);
        one.runs.differences.push_back(means.differences[s]);
      }
      sets.push_back(one);
    }
    const analyses::PooledDataSets pooled = pool_data_sets(sets);
    const auto p_of = [](const auto& test) { return test ? Measured(test->p) : Measured::none(test.reason()); };
    counter.add("Fisher", false, p_of(pooled.naive_fisher));
    counter.add("Stouffer of paired t", false, p_of(pooled.naive_stouffer));
    counter.add("joint sign flips", false, pooled.flips.p);
    counter.add("Stouffer of crossed p", spread == 0, p_of(pooled.crossed_stouffer));
    counter.add("random effects", true, p_of(pooled.relative_gain), interval_of(pooled.relative_gain), truth);
  }
  return counter.rows();
}

std::vector<SeedCoverage> cover_slopes(const RecommenderCase& what, std::size_t seeds, std::size_t users, double effect,
                                       std::int64_t simulations, std::uint64_t seed) {
  CellCounter counter({"slope", "", false, what.name, seeds, users, effect, simulations, 0, 0, 0});
  const double truth = -effect / 3 * popular_items.mean_spread();
  for (std::int64_t i = 0; i < simulations; ++i) {
    Random random(seed, static_cast<std::uint64_t>(i));
    std::vector<double> own;
    std::vector<std::int64_t> item_count, frequency, length;
    for (std::size_t item = 0; item < users / 2; ++item) {
      own.push_back(own_gain(what, random));
      item_count.push_back(draw_item_count(random));
    }
    const std::vector<std::size_t> targets = popular_targets(item_count, users, random);
    std::vector<SimulatedUser> population;
    for (const std::size_t item : targets) {
      frequency.push_back(item_count[item]);
      length.push_back(3 + static_cast<std::int64_t>(random.below(40)));
      const double gain = effect * (1 - std::log1p(static_cast<double>(item_count[item])) / 3);
      population.push_back({popular_items.draw(random), own[item] + gain});
    }
    const PairedUnits runs = observe(population, seeds, what.noise, random);
    const auto fit = gain_regression(runs, frequency, length, targets);
    if (!fit) continue;
    const analyses::GainSlope& slope = fit->frequency;
    const analyses::Estimate clustered{slope.value, slope.clustered_error, slope.clustered_degrees_of_freedom};
    counter.add("clustered by item", false, slope.clustered_p, student_interval(clustered), truth);
    counter.add("crossed by item", true, slope.crossed, truth);
  }
  return counter.rows();
}

}  // namespace gainlens::testing
