#include "analyses/crossed_estimate.h"
#include "analyses/seed_comparison.h"
#include "calibration/normal.h"
#include "calibration/seed_coverage.h"
#include "core/check.h"
#include "core/random.h"

#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gainlens::testing {
namespace {

using analyses::CrossedEstimate;
using analyses::Estimate;
using analyses::Interval;

constexpr std::size_t units = 100;
constexpr double levels[] = {0.05, 0.01, 0.001};

/// Counts one method of one cell.
struct LevelCount {
  double rejected[3] = {0, 0, 0}, held = 0;  // at the three levels; intervals of 95%

  void add(double p, const Interval& interval, double truth) {
    for (std::size_t level = 0; level < 3; ++level) rejected[level] += p <= levels[level] ? 1 : 0;
    held += interval.low <= truth && truth <= interval.high ? 1 : 0;
  }
  void add(const Estimate& estimate, double truth) { add(p_of(estimate), student_interval(estimate), truth); }
  static double p_of(const Estimate& estimate) {
    const boost::math::students_t student(estimate.degrees_of_freedom);
    return 2 * boost::math::cdf(boost::math::complement(student, std::abs(estimate.value) / estimate.error));
  }
};

/// The linear form of one simulated comparison, as crossed_estimate takes it.
struct SimulatedForm {
  std::vector<double> by_seed, influence;
  double value = 0;
  double training_checks = 0;  // mean over the seeds of the seed's own effect: the truth for these trainings
};

/// With mean 0 and deviation 1.
double effect_of_seed(SeedLaw law, NormalNumbers& normal, Random& random) {
  switch (law) {
    case SeedLaw::normal:
      return normal.draw();
    case SeedLaw::uniform:
      return std::sqrt(3.0) * (2 * random.uniform() - 1);
    case SeedLaw::two_values:
      return random.bits() & 1 ? 1 : -1;
    case SeedLaw::exponential:
      return -std::log1p(-random.uniform()) - 1;
    case SeedLaw::one_in_ten_fails:
      return random.uniform() < 0.1 ? -3 : 1.0 / 3;
  }
  ASSERT(false, "law {}", static_cast<int>(law));
}

/// From how many seeds on the level is stated if seeds have this law; 0: never.
std::size_t fewest_stated_seeds(SeedLaw law) {
  const bool skewed = law == SeedLaw::exponential || law == SeedLaw::one_in_ten_fails;
  return skewed                       ? 0
         : law == SeedLaw::two_values ? analyses::fewest_seeds_of_symmetric_form
                                      : analyses::fewest_crossed_seeds;
}

SimulatedForm draw_form(const LevelCase& what, std::size_t seeds, NormalNumbers& normal, Random& random) {
  const double root = std::sqrt(static_cast<double>(units));
  const double unbiased = std::sqrt(static_cast<double>(units) / static_cast<double>(units - 1));
  SimulatedForm form;
  form.influence.resize(seeds * units);
  double own[units];
  for (double& unit : own) unit = what.unit * root * normal.draw();
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    const double effect = what.seed * effect_of_seed(what.law, normal, random);
    double sum = 0;
    for (std::size_t unit = 0; unit < units; ++unit) {
      const double value = own[unit] + what.noise * root * normal.draw();
      form.influence[seed * units + unit] = value;
      sum += value;
    }
    const double middle = sum / static_cast<double>(units);
    for (std::size_t unit = 0; unit < units; ++unit) {
      double& value = form.influence[seed * units + unit];
      value = unbiased * (value - middle) / static_cast<double>(units);
    }
    form.by_seed.push_back(effect + middle);
    form.value += form.by_seed.back() / static_cast<double>(seeds);
    form.training_checks += effect / static_cast<double>(seeds);
  }
  return form;
}

}  // namespace

const std::vector<LevelCase>& level_cases() {
  // Standard deviations of the mean over users in one run: of a seed's effect, of own gains of units, of noise.
  static const std::vector<LevelCase> cases = {
      {"noise alone", 0, 0, 1},
      {"seeds alone", 3, 0, 1},
      {"seeds, and units half as strong", 3, 0.9, 0.3},
      {"seeds and units alike", 1, 0.6, 0.3},
      {"units twice as strong as seeds", 1, 1.2, 1},
      {"units alone", 0, 2, 1},
      {"uniform seeds alone", 3, 0, 0.3, SeedLaw::uniform},
      {"uniform seeds, and units half as strong", 3, 0.9, 0.3, SeedLaw::uniform}};
  return cases;
}

const std::vector<LevelCase>& other_seed_cases() {
  static const std::vector<LevelCase> cases = {
      {"seeds of two values", 3, 0, 0.3, SeedLaw::two_values},
      {"seeds of two values, as much noise", 1, 0, 1, SeedLaw::two_values},
      {"exponential seeds", 3, 0, 0.3, SeedLaw::exponential},
      {"one training in ten fails", 3, 0, 0.3, SeedLaw::one_in_ten_fails},
      {"one training in ten fails, half as much noise", 3, 0, 1.5, SeedLaw::one_in_ten_fails},
      {"one training in ten fails, as much noise", 1, 0, 1, SeedLaw::one_in_ten_fails}};
  return cases;
}

std::vector<SeedCoverage> cover_levels(const LevelCase& what, std::size_t seeds, std::int64_t simulations,
                                       std::uint64_t seed) {
  LevelCount naive, crossed, stated, users, far;
  Random random(seed);
  NormalNumbers normal(random);
  for (std::int64_t i = 0; i < simulations; ++i) {
    const SimulatedForm form = draw_form(what, seeds, normal, random);
    const auto found =
        analyses::crossed_estimate(form.value, form.by_seed, form.influence, static_cast<double>(units - 1), 1);
    ASSERT(found, "a simulation without an estimate: {}", found.reason());
    if (seeds == 1) {
      users.add({form.value - form.training_checks, std::sqrt(found->unit_variance), static_cast<double>(units - 1)},
                0);
      stated.add(1, {found->over_units->low, found->over_units->high}, 0);
      continue;
    }
    const Estimate alone{form.value, std::sqrt(*found->seed_variance), static_cast<double>(seeds - 1)};
    naive.add(alone, 0);
    crossed.add(found->estimate(), 0);
    stated.add(std::max(LevelCount::p_of(alone), LevelCount::p_of(found->estimate())),
               *(found->interval ? found->interval : found->range), 0);
    const auto farthest = analyses::outlying_value(form.by_seed);
    far.add(farthest ? farthest->p : 1, {0, 0}, 0);
  }
  const auto row = [&](const std::string& method, bool is_stated, const LevelCount& count, double tested = 1) {
    const auto all = static_cast<double>(simulations);
    const auto rate = [&](std::size_t level) { return tested * count.rejected[level] / all; };
    return SeedCoverage{"levels",    method, is_stated, what.name,        seeds,   units,  0,
                        simulations, tested, rate(0),   count.held / all, rate(1), rate(2)};
  };
  if (seeds == 1) {
    return {row("users alone, for these trainings", true, users, 0),
            row("users alone, for other trainings", false, stated, 0)};
  }
  const std::size_t fewest = fewest_stated_seeds(what.law);
  std::vector<SeedCoverage> rows = {row("paired t", false, naive), row("sum of variances alone", false, crossed),
                                    row("seeds and units", fewest > 0 && seeds >= fewest, stated)};
  if (seeds < 3) return rows;
  rows.push_back(row("a seed is named as far", false, far));
  rows.back().covered = std::numeric_limits<double>::quiet_NaN();
  return rows;
}

}  // namespace gainlens::testing
