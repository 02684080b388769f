#pragma once

#include "analyses/crossed_estimate.h"
#include "analyses/options.h"
#include "analyses/paired_units.h"
#include "analyses/seed_comparison.h"
#include "core/json.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// Units whose gain counts with a sign: one group with sign 1 is the gain itself, a second group with sign -1 makes the
/// difference between two gains.
struct SignedGroup {
  std::vector<std::size_t> units;  ///< positions on the axis of units, each at most once over all groups
  double sign;                     ///< 1 or -1
};
SignedGroup all_units(const PairedUnits& pairs);

/// What a gain is. The two scales can differ in sign when groups differ in their baseline: say which one is meant.
enum class GainScale {
  difference,  ///< mean of the candidate - mean of the baseline
  log_ratio    ///< ln(mean of the candidate / mean of the baseline); exp(x) - 1 is the relative gain
};

/// The sum over groups of sign x gain, with an error over seeds and units. For the log ratio the error is that of its
/// linear form (delta method), and over units that of the jackknife, which leaves out one cluster at a time. Its
/// degrees of freedom are the effective number of clusters of the smallest group - 1: (sum of sizes)^2 / sum of their
/// squares.
/// @param cluster  [unit] units with the same number err together, for example users with one target item; empty: every
///     unit is a cluster
/// Missing as for crossed_estimate; the log ratio also if a mean is not above 0.
/// Source: docs/inference.md, "Gains over seeds".
Maybe<CrossedEstimate> crossed_gain(const PairedUnits& pairs, std::span<const SignedGroup> groups, GainScale scale,
                                    std::span<const std::size_t> cluster = {});

struct Resamples {
  std::int64_t count = 2000;
  std::uint64_t seed = 0;
};

/// The smallest number of seeds with which the percentile range counts as a 95% interval: below it, simulated ranges
/// hold the truth too rarely. Source: docs/analyses/seed-coverage.md.
inline constexpr std::size_t fewest_bootstrap_seeds = 10;

/// Seeds and units, each drawn with replacement and crossed (Owen 2007, "The pigeonhole bootstrap"). The variance over
/// resamples counts the noise of single observations three times, so that it is too large when this noise dominates;
/// with few seeds it is too small instead. Units are drawn one by one, so it is too small also if users of one target
/// item gain together.
struct SeedUnitBootstrap {
  double value;
  double error;    ///< standard deviation over resamples
  Interval range;  ///< 2.5% and 97.5% quantiles of the resamples
  bool is_95;      ///< whether `range` counts as a 95% interval; otherwise it is a range without a level
  double p;        ///< two-sided: twice the smaller share of resamples on one side of 0, the estimate counted too
  std::int64_t resamples;
  std::uint64_t seed;
};

struct BootstrapGains {
  Maybe<SeedUnitBootstrap> difference;
  Maybe<SeedUnitBootstrap> log_ratio;  ///< from the same resamples; missing if a mean is not above 0 in one of them
};

/// Each group draws as many units as it has. Missing with fewer than two seeds, or fewer than two units in a group.
/// @throws InvalidArgument  fewer than 39 resamples, which cannot reach p = 0.05, or more than 1,000,000
BootstrapGains bootstrap_gain(const PairedUnits& pairs, std::span<const SignedGroup> groups,
                              const Resamples& resamples = {});

OrderedJson to_json(const SeedUnitBootstrap& bootstrap);

/// One score of two arms, whatever its unit is: candidate against baseline.
struct ScoreGain {
  std::vector<double> seed_differences;  ///< [seed] candidate - baseline
  SeedComparison seeds;                  ///< over seeds, units fixed
  Maybe<CrossedEstimate> difference;     ///< over seeds and units
  Maybe<CrossedEstimate> log_ratio;      ///< likewise
  BootstrapGains bootstrap;
};

/// Source: docs/inference.md, "Gains over seeds".
/// @param cluster  as for crossed_gain()
ScoreGain score_gain(const PairedUnits& pairs, std::span<const std::size_t> cluster, const Resampling& resampling,
                     const Resamples& resamples);

OrderedJson to_json(const ScoreGain& gain);

}  // namespace gainlens::analyses
