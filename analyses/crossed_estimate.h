#pragma once

#include "analyses/equivalence.h"
#include "analyses/measured.h"
#include "analyses/statistics.h"
#include "core/json.h"

#include <cstddef>
#include <span>
#include <string>

namespace gainlens::analyses {

/// The smallest number of seeds with which an error over seeds and units is stated: below it, simulated intervals hold
/// the truth too rarely. Source: docs/analyses/seed-coverage.md.
inline constexpr std::size_t fewest_crossed_seeds = 3;
/// The smallest effective number of units likewise: units of equal weight that would say as much.
inline constexpr double fewest_effective_units = 5;

/// An estimate from runs with several seeds that are all evaluated on the same units: users, questions, documents.
/// Seeds and units are both samples: the error counts other trainings and other units. Users that err together are one
/// unit.
///
/// What is stated depends on the number of seeds. Three or more: `interval` and `p`. Two: `range`, which has no level.
/// One: `over_units`, which says nothing about other trainings. With fewer than `fewest_effective_units` there is the
/// `range` of two seeds or more, and nothing of one.
struct CrossedEstimate {
  double value;
  std::size_t seeds;
  std::size_t units;
  double effective_units;   ///< of equal weight that would say as much; at most `units`
  Measured seed_variance;   ///< of `value`, as the spread over seeds shows it; contains `noise_variance`
  double unit_variance;     ///< of `value`, as the spread over units shows it; contains `noise_variance`
  Measured noise_variance;  ///< of `value`, from what neither seed nor unit explains
  /// Square root of seed_variance + unit_variance - noise_variance, which counts the noise once. It is never below the
  /// larger of the first two. Missing with one seed, like the other two.
  Measured error;
  Measured degrees_of_freedom;  ///< of `error`: Satterthwaite 1946, of the three variances
  /// 95%: the wider of two Student intervals, that of `error` and that of the seeds alone (root of `seed_variance`,
  /// seeds - 1 degrees of freedom). Missing with fewer than `fewest_crossed_seeds` or `fewest_effective_units`.
  Maybe<Interval> interval;
  Measured p;  ///< two-sided, for a true value of 0: the larger p of the same two; missing likewise
  /// By the formula of `interval`, where two seeds or more allow none. It has no level. Otherwise missing.
  Maybe<Interval> range;
  Maybe<Interval> over_units;  ///< of one seed: 95% over units alone, Student. Otherwise missing
  std::string noun = "user";   ///< what a unit is called

  /// @pre  at least two seeds
  Estimate estimate() const { return {value, *error, *degrees_of_freedom}; }
};

/// Variance components of an estimate that is (nearly) linear in its observations [seed, unit].
/// Source: the two-way random effects model without replication, Searle, Casella and McCulloch 1992, chapter 4;
/// docs/inference.md, "Gains over seeds".
/// @param by_seed    [seed] the linear form of the estimate in each run; only the spread counts; at least one
/// @param influence  [seed, unit] what a unit adds to the linear form of a run, minus what it adds on average; scaled
///     so that the sum of the squares over units is an unbiased variance
/// @param unit_degrees_of_freedom  of the variance over units: their effective number - 1
/// @param scale      size of the terms that `by_seed` is summed of: a spread at rounding counts as none
/// @param noun       what a unit is called: "user", "document"
/// Missing with less than one unit degree of freedom, if nothing varies, and, from three seeds on, if the error has
/// less than one degree of freedom.
Maybe<CrossedEstimate> crossed_estimate(double value, std::span<const double> by_seed,
                                        std::span<const double> influence, double unit_degrees_of_freedom, double scale,
                                        const std::string& noun = "user");
/// The reason why an estimate is missing with fewer than two units.
std::string too_few_units(const std::string& noun);

/// What its number of seeds allows: `interval`, `range` or `over_units`.
Maybe<Interval> shown_ends(const Maybe<CrossedEstimate>& estimate);

/// The interval and the p that are stated; missing with the reason if the estimate or this part of it is.
Maybe<Interval> stated_interval(const Maybe<CrossedEstimate>& estimate);
Measured stated_p(const Maybe<CrossedEstimate>& estimate);

OrderedJson to_json(const CrossedEstimate& estimate);

/// Two one-sided tests of an estimate against ±margin, with the error over seeds and units and with that of the seeds
/// alone. As for CrossedEstimate, the larger p and the wider interval are stated.
/// Missing like `estimate`, and with fewer than `fewest_crossed_seeds`.
Equivalence crossed_equivalence(const Maybe<CrossedEstimate>& estimate, double margin);

}  // namespace gainlens::analyses
