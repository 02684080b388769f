#pragma once

#include "analyses/measured.h"
#include "analyses/statistics.h"
#include "core/json.h"

#include <cstddef>
#include <span>

namespace gainlens::analyses {

/// An estimate from runs with several seeds that are all evaluated on the same users. Seeds and users are both samples:
/// the error counts other trainings and other users. A unit is a user, or all users that err together.
struct CrossedEstimate {
  double value;
  std::size_t seeds;
  std::size_t units;
  double seed_variance;   ///< of `value`, as the spread over seeds shows it; contains `noise_variance`
  double unit_variance;   ///< of `value`, as the spread over units shows it; contains `noise_variance`
  double noise_variance;  ///< of `value`, from what neither seed nor unit explains
  /// Square root of seed_variance + unit_variance - noise_variance, which counts the noise once. It is never below the
  /// larger of the first two.
  double error;
  double degrees_of_freedom;  ///< Satterthwaite 1946, of the three variances
  Interval interval;          ///< 95%, Student
  double p;                   ///< two-sided, for a true value of 0

  Estimate estimate() const { return {value, error, degrees_of_freedom}; }
};

/// Variance components of an estimate that is (nearly) linear in its observations [seed, unit].
/// Source: the two-way random effects model without replication, Searle, Casella and McCulloch 1992, chapter 4;
/// docs/inference.md, "Gains over seeds".
/// @param by_seed    [seed] the linear form of the estimate in each run; only the spread counts
/// @param influence  [seed, unit] what a unit adds to the linear form of a run, minus what it adds on average; scaled
///     so that the sum of the squares over units is an unbiased variance
/// @param unit_degrees_of_freedom  of the variance over units
/// Missing with fewer than two seeds or one unit degree of freedom, if nothing varies, and if the error has less than
/// one degree of freedom.
Maybe<CrossedEstimate> crossed_estimate(double value, std::span<const double> by_seed,
                                        std::span<const double> influence, double unit_degrees_of_freedom);

OrderedJson to_json(const CrossedEstimate& estimate);
void put(OrderedJson& object, std::string_view name, const Maybe<CrossedEstimate>& estimate);

}  // namespace gainlens::analyses
