#pragma once

#include "core/ranking_metrics.h"

#include <cstddef>
#include <span>
#include <vector>

namespace gainlens::analyses {

/// One metric of the same users in the runs of two arms. Run s of both arms has the same seed.
struct PairedUsers {
  std::size_t seeds;             ///< at least 1
  std::size_t users;             ///< at least 1
  std::vector<float> baseline;   ///< [seed, user] finite
  std::vector<float> candidate;  ///< [seed, user] finite
};

/// The value of each user in each run, from the ranks of their targets.
/// @param baseline_ranks, candidate_ranks  [seed, user]
/// @throws InvalidArgument  no seed, no user, sizes that differ, a rank that is not finite or below 1
PairedUsers paired_users(const RankingMetric& metric, std::span<const float> baseline_ranks,
                         std::span<const float> candidate_ranks, std::size_t seeds, std::size_t users);

/// One metric of two arms in each of their runs: means over users.
struct SeedMeans {
  std::vector<double> baseline;     ///< [seed]
  std::vector<double> candidate;    ///< [seed]
  std::vector<double> differences;  ///< [seed] candidate - baseline
};
/// A difference is the sum over users of candidate - baseline, divided once by their number. For hit rates the sum is a
/// whole number, so that equal differences are equal bit by bit, and opposite ones have one size. For other metrics,
/// differences that differ by rounding alone are made equal (without_rounding()).
/// @param group  positions on the user axis, at least one
SeedMeans seed_means(const PairedUsers& users, std::span<const std::size_t> group);
/// The same for all users.
SeedMeans seed_means(const PairedUsers& users);

}  // namespace gainlens::analyses
