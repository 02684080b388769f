#include "analyses/ranking_metrics.h"

#include "core/check.h"

#include <cmath>

namespace gainlens::analyses {
namespace {

void check_metric(const RankingMetric& metric) {
  CHECK(metric.cutoff >= 0, "metric: a cutoff of {}; it is at least 1, or 0 for none", metric.cutoff);
  CHECK(metric.gain != RankingGain::hit || metric.cutoff > 0, "metric: HR without a cutoff; give one, such as HR@10");
}

double gain_at(const RankingMetric& metric, double rank) {
  if (metric.cutoff > 0 && rank > metric.cutoff) return 0;
  switch (metric.gain) {
    case RankingGain::hit:
      return 1;
    case RankingGain::discounted:
      return 1 / std::log2(1 + rank);
    case RankingGain::reciprocal:
      return 1 / rank;
  }
  ASSERT(false, "ranking gain {}", static_cast<int>(metric.gain));
}

std::vector<float> values_of(const RankingMetric& metric, std::span<const float> ranks, std::size_t users) {
  std::vector<float> values;
  values.reserve(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    CHECK(std::isfinite(ranks[i]) && ranks[i] >= 1, "ranks: {} for user {} in run {}; a rank is finite and at least 1",
          ranks[i], i % users, i / users);
    values.push_back(static_cast<float>(gain_at(metric, ranks[i])));
  }
  return values;
}

}  // namespace

double value_of(const RankingMetric& metric, double rank) {
  check_metric(metric);
  CHECK(std::isfinite(rank) && rank >= 1, "ranks: {}; a rank is finite and at least 1", rank);
  return gain_at(metric, rank);
}

std::string name_of(const RankingMetric& metric) {
  const std::string cutoff = metric.cutoff > 0 ? fmt::format("@{}", metric.cutoff) : "";
  switch (metric.gain) {
    case RankingGain::hit:
      return "HR" + cutoff;
    case RankingGain::discounted:
      return "NDCG" + cutoff;
    case RankingGain::reciprocal:
      return "MRR" + cutoff;
  }
  ASSERT(false, "ranking gain {}", static_cast<int>(metric.gain));
}

PairedUsers paired_users(const RankingMetric& metric, std::span<const float> baseline_ranks,
                         std::span<const float> candidate_ranks, std::size_t seeds, std::size_t users) {
  check_metric(metric);
  CHECK(seeds > 0 && users > 0, "ranks: {} runs of {} users; each arm needs at least one run and one user", seeds,
        users);
  CHECK(baseline_ranks.size() == seeds * users && candidate_ranks.size() == seeds * users,
        "ranks: {} of the baseline and {} of the candidate; {} runs of {} users need {} each", baseline_ranks.size(),
        candidate_ranks.size(), seeds, users, seeds * users);
  return {seeds, users, values_of(metric, baseline_ranks, users), values_of(metric, candidate_ranks, users)};
}

std::vector<double> means_by_seed(std::span<const float> values, std::size_t users) {
  ASSERT(users > 0 && values.size() % users == 0, "{} values of {} users", values.size(), users);
  std::vector<double> means;
  for (std::size_t first = 0; first < values.size(); first += users) {
    double sum = 0;
    for (const float value : values.subspan(first, users)) sum += value;
    means.push_back(sum / static_cast<double>(users));
  }
  return means;
}

}  // namespace gainlens::analyses
