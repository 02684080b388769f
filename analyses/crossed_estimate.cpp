#include "analyses/crossed_estimate.h"

#include "analyses/seed_comparison.h"
#include "core/check.h"

#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace gainlens::analyses {
namespace {

double square(double x) {
  return x * x;
}

/// The variance, or 0 if it is that of rounding alone.
double above_rounding(double variance, double scale) {
  return is_rounding(std::sqrt(variance), scale) ? 0 : variance;
}

/// Variance of the mean over seeds.
double variance_over_seeds(std::span<const double> by_seed, double scale) {
  return alike(by_seed, scale) ? 0 : square(mean_estimate(by_seed).error);
}

struct UnitVariances {
  double units = 0;  // of the means over seeds
  double noise = 0;  // of what is left in each seed; 0 with one seed
};

UnitVariances unit_variances(std::span<const double> influence, std::size_t seeds, double scale) {
  const std::size_t units = influence.size() / seeds;
  std::vector<double> means(units, 0.0);
  for (std::size_t i = 0; i < influence.size(); ++i) means[i % units] += influence[i] / static_cast<double>(seeds);
  UnitVariances variances;
  for (const double value : means) variances.units += square(value);
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    for (std::size_t unit = 0; unit < units; ++unit)
      variances.noise += square(influence[seed * units + unit] - means[unit]);
  }
  variances.units = above_rounding(variances.units, scale);
  if (seeds > 1)
    variances.noise =
        above_rounding(variances.noise / (static_cast<double>(seeds) * static_cast<double>(seeds - 1)), scale);
  return variances;
}

double two_sided_p(const Estimate& estimate) {
  const boost::math::students_t student(estimate.degrees_of_freedom);
  return 2 * boost::math::cdf(boost::math::complement(student, std::abs(estimate.value) / estimate.error));
}

/// The wider interval and the larger p of two errors of one value. An error of 0 takes no part.
struct Judged {
  Interval interval;
  double p;
};
Judged judge(const Estimate& crossed, const Estimate& seeds) {
  Judged judged{student_interval(crossed), two_sided_p(crossed)};
  if (!(seeds.error > 0)) return judged;
  const Interval alone = student_interval(seeds);
  if (alone.low < judged.interval.low) judged.interval = alone;
  judged.p = std::max(judged.p, two_sided_p(seeds));
  return judged;
}

/// Why nothing is stated of so few units; empty: they are enough. A sum of squares may miss a whole number by rounding.
std::string too_few_to_state(double effective_units, const std::string& noun) {
  if (effective_units >= fewest_effective_units * (1 - 1e-12)) return "";
  return fmt::format(
      "a 95% interval and a p need {0} {1}s of equal weight, with those that err together as one; these "
      "say as much as {2:.3g}",
      fewest_effective_units, noun, effective_units);
}

/// One run: nothing is known of other trainings.
CrossedEstimate one_seed_estimate(double value, const Estimate& units, std::size_t count, const std::string& noun) {
  const std::string reason =
      fmt::format("an error over seeds needs at least {} seeds; there is 1", fewest_crossed_seeds);
  const Measured none = Measured::none(reason);
  const auto no_interval = Maybe<Interval>::none(reason);
  const double effective = units.degrees_of_freedom + 1;
  const std::string few = too_few_to_state(effective, noun);
  const auto over_units = few.empty() ? Maybe<Interval>(student_interval(units)) : Maybe<Interval>::none(few);
  return {value, 1,    count,       effective, none,        square(units.error), none,
          none,  none, no_interval, none,      no_interval, over_units,          noun};
}

}  // namespace

Equivalence crossed_equivalence(const Maybe<CrossedEstimate>& estimate, double margin) {
  if (!estimate) return no_equivalence(margin, 0, estimate.reason());
  if (!estimate->p) return no_equivalence(margin, estimate->units, estimate->p.reason());
  Equivalence found = test_equivalence(estimate->estimate(), estimate->units, margin);
  if (!(*estimate->seed_variance > 0)) return found;
  const Equivalence seeds =
      test_equivalence({estimate->value, std::sqrt(*estimate->seed_variance), static_cast<double>(estimate->seeds - 1)},
                       estimate->units, margin);
  found.p = std::max(*found.p, *seeds.p);
  found.difference_p = std::max(*found.difference_p, *seeds.difference_p);
  found.exceeds_p = std::max(*found.exceeds_p, *seeds.exceeds_p);
  if (seeds.interval->low < found.interval->low) found.interval = seeds.interval;
  found.flatness = flatness_of(*found.p, *found.difference_p);
  return found;
}

Maybe<CrossedEstimate> crossed_estimate(double value, std::span<const double> by_seed,
                                        std::span<const double> influence, double unit_degrees_of_freedom, double scale,
                                        const std::string& noun) {
  using Result = Maybe<CrossedEstimate>;
  const std::size_t seeds = by_seed.size();
  ASSERT(seeds > 0 && influence.size() % seeds == 0, "{} influences in {} runs", influence.size(), seeds);
  if (!(unit_degrees_of_freedom >= 1)) return Result::none(too_few_units(noun));
  const std::size_t units = influence.size() / seeds;
  const auto [unit_variance, noise_variance] = unit_variances(influence, seeds, scale);
  if (seeds == 1) {
    if (!(unit_variance > 0)) return Result::none("the difference is the same for every " + noun);
    return one_seed_estimate(value, {value, std::sqrt(unit_variance), unit_degrees_of_freedom}, units, noun);
  }
  const double seed_variance = variance_over_seeds(by_seed, scale);
  const double variance = std::max({seed_variance + unit_variance - noise_variance, seed_variance, unit_variance});
  if (!(variance > 0)) return Result::none("the difference is the same in every run and for every " + noun);
  const auto seed_degrees = static_cast<double>(seeds - 1);
  const double satterthwaite =
      square(variance) / (square(seed_variance) / seed_degrees + square(unit_variance) / unit_degrees_of_freedom +
                          square(noise_variance) / (seed_degrees * unit_degrees_of_freedom));
  const double effective = unit_degrees_of_freedom + 1;
  const std::string few = too_few_to_state(effective, noun);
  const bool stated = seeds >= fewest_crossed_seeds && few.empty();
  if (stated &&
      !(satterthwaite >= 1))  // no interval of a size that tells anything; its quantile can exceed every number
    return Result::none(
        fmt::format("the error has {:.2g} degrees of freedom, and 1 is needed: more seeds or units", satterthwaite));
  // Two seeds have about one degree of freedom: where they alone count, the formula gives a little less.
  const double degrees = std::max(satterthwaite, 1.0);
  const Judged judged = judge({value, std::sqrt(variance), degrees}, {value, std::sqrt(seed_variance), seed_degrees});
  // Units come first: of too few of them a third seed states nothing either.
  const std::string below = few.empty()
                                ? "2 seeds give a range without a level; a 95% interval and a p need a third seed"
                                : few + (seeds < fewest_crossed_seeds ? "; a third seed is needed too" : "");
  const std::string above = fmt::format("there are {} seeds: see the 95% interval", seeds);
  return CrossedEstimate{value,
                         seeds,
                         units,
                         effective,
                         seed_variance,
                         unit_variance,
                         noise_variance,
                         std::sqrt(variance),
                         degrees,
                         stated ? Maybe<Interval>(judged.interval) : Maybe<Interval>::none(below),
                         stated ? Measured(judged.p) : Measured::none(below),
                         stated ? Maybe<Interval>::none(above) : Maybe<Interval>(judged.interval),
                         Maybe<Interval>::none(stated ? above : below),
                         noun};
}

std::string too_few_units(const std::string& noun) {
  return fmt::format("an error over {0}s needs at least 2 {0}s in each group", noun);
}

Maybe<Interval> stated_interval(const Maybe<CrossedEstimate>& estimate) {
  return estimate ? estimate->interval : Maybe<Interval>::none(estimate.reason());
}

Maybe<Interval> shown_ends(const Maybe<CrossedEstimate>& estimate) {
  if (!estimate) return Maybe<Interval>::none(estimate.reason());
  for (const auto* ends : {&estimate->interval, &estimate->range, &estimate->over_units}) {
    if (*ends) return *ends;
  }
  return estimate->seeds == 1 ? estimate->over_units : estimate->interval;
}

Measured stated_p(const Maybe<CrossedEstimate>& estimate) {
  return estimate ? estimate->p : Measured::none(estimate.reason());
}

OrderedJson to_json(const CrossedEstimate& estimate) {
  OrderedJson json;
  json["value"] = estimate.value;
  json["seeds"] = estimate.seeds;
  json["units"] = estimate.units;
  json["effective_units"] = estimate.effective_units;
  put(json, "seed_variance", estimate.seed_variance);
  json["unit_variance"] = estimate.unit_variance;
  put(json, "noise_variance", estimate.noise_variance);
  put(json, "standard_error", estimate.error);
  put(json, "degrees_of_freedom", estimate.degrees_of_freedom);
  put(json, "interval_95", estimate.interval);
  put(json, "p", estimate.p);
  if (estimate.range) put(json, "range", estimate.range);
  if (estimate.over_units) put(json, fmt::format("interval_95_over_{}s_alone", estimate.noun), estimate.over_units);
  if (const std::string note = few_seeds_note(estimate.seeds); estimate.p && !note.empty()) json["p_note"] = note;
  return json;
}

}  // namespace gainlens::analyses
