#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// The value of one user in one run: a function of the rank of the user's target among all items.
enum class RankingGain {
  hit,         ///< HR: 1 if rank <= cutoff, else 0
  discounted,  ///< NDCG with a single target: 1 / log2(1 + rank) if rank <= cutoff, else 0
  reciprocal   ///< MRR: 1 / rank if rank <= cutoff, else 0
};

struct RankingMetric {
  RankingGain gain;
  int cutoff = 0;  ///< 0: none. A hit needs one.
};

/// @param rank  at least 1. It may end in .5, because a tie counts one half: a rank of 10.5 is no hit at 10.
/// @throws InvalidArgument  a rank that is not finite or below 1, a hit rate without a cutoff, a negative cutoff
/// Source: bft.tex, "Main results"; leave-one-out evaluation has one target a user, so its ideal DCG is 1.
double value_of(const RankingMetric& metric, double rank);
/// "HR@10", "NDCG@10", "MRR", "MRR@10".
std::string name_of(const RankingMetric& metric);

/// One metric of the same users in the runs of two arms. Run s of both arms has the same seed.
struct PairedUsers {
  std::size_t seeds;             ///< at least 1
  std::size_t users;             ///< at least 1
  std::vector<float> baseline;   ///< [seed, user] finite
  std::vector<float> candidate;  ///< [seed, user] finite
};

/// @throws InvalidArgument  no seed, no user, sizes that differ, or as for value_of
PairedUsers paired_users(const RankingMetric& metric, std::span<const float> baseline_ranks,
                         std::span<const float> candidate_ranks, std::size_t seeds, std::size_t users);
/// Mean over users, run by run. @param values  [seed, user]
/// @returns  [seed]
std::vector<double> means_by_seed(std::span<const float> values, std::size_t users);

}  // namespace gainlens::analyses
