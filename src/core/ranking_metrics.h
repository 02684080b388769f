#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gainlens {

/// What a ranking is worth, as a function of the rank of the item that the user chose. A metric of a model is the mean
/// over users.
struct RankingMetric {
  enum class Kind {
    hit,              ///< HR@k: 1 if rank <= k, else 0
    gain,             ///< NDCG@k: 1 / log2(1 + rank) if rank <= k, else 0
    reciprocal_rank,  ///< MRR: 1 / rank; with a cutoff: 0 if rank > k
  };
  Kind kind;
  std::int64_t cutoff = 0;  ///< k; 0: none

  std::string name() const;   ///< "hr@10", "ndcg@10", "mrr", "mrr@10": in options and files
  std::string title() const;  ///< "HR@10", "NDCG@10", "MRR", "MRR@10": as papers print it
  /// @param rank  1 is the best; a half where items with the same score share ranks
  double value_at(double rank) const;
  bool operator==(const RankingMetric&) const = default;
};

/// hr@5, hr@10, hr@20, ndcg@5, ndcg@10, ndcg@20, mrr, mrr@10: those that every evaluation reports, in this order.
const std::vector<RankingMetric>& ranking_metrics();

/// @throws InvalidArgument  no such metric (nearest match named)
RankingMetric parse_ranking_metric(const std::string& name);

/// Mean over the ranks, in double. @param ranks  at least one
double mean_of(const RankingMetric& metric, std::span<const float> ranks);
double mean_of(const RankingMetric& metric, std::span<const double> ranks);

}  // namespace gainlens
