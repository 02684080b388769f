#pragma once

#include "core/ranking_metrics.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// One score of the same units in the runs of two arms. A unit is what every run is evaluated on: a user, a question, a
/// document. Run s of both arms has the same seed.
struct PairedUnits {
  std::size_t seeds;              ///< at least 1
  std::size_t units;              ///< at least 1
  std::vector<double> baseline;   ///< [seed, unit] finite
  std::vector<double> candidate;  ///< [seed, unit] finite
  std::string noun = "user";      ///< what a unit is called
};

/// @param baseline, candidate  [seed, unit]
/// @throws InvalidArgument  no seed, no unit, sizes that differ, a score that is not finite
PairedUnits paired_units(std::vector<double> baseline, std::vector<double> candidate, std::size_t seeds,
                         std::size_t units, const std::string& noun);

/// The value of each user in each run, from the ranks of their targets. Values are rounded to float32, as every version
/// compared them.
/// @param baseline_ranks, candidate_ranks  [seed, user]
/// @throws InvalidArgument  no seed, no user, sizes that differ, a rank that is not finite or below 1
PairedUnits paired_users(const RankingMetric& metric, std::span<const double> baseline_ranks,
                         std::span<const double> candidate_ranks, std::size_t seeds, std::size_t users);

/// One score of two arms in each of their runs: means over units.
struct SeedMeans {
  std::vector<double> baseline;     ///< [seed]
  std::vector<double> candidate;    ///< [seed]
  std::vector<double> differences;  ///< [seed] candidate - baseline
  std::string noun = "user";        ///< what a unit is called
};
/// A difference is the sum over units of candidate - baseline, divided once by their number. For hit rates the sum is a
/// whole number, so that equal differences are equal bit by bit, and opposite ones have one size. For other scores,
/// differences that differ by rounding alone are made equal (without_rounding()).
/// @param group  positions on the axis of units, at least one
SeedMeans seed_means(const PairedUnits& pairs, std::span<const std::size_t> group);
/// The same for all units.
SeedMeans seed_means(const PairedUnits& pairs);

}  // namespace gainlens::analyses
