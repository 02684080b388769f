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
/// Mean over users, run by run. @param values  [seed, user]
/// @returns  [seed]
std::vector<double> means_by_seed(std::span<const float> values, std::size_t users);

}  // namespace gainlens::analyses
