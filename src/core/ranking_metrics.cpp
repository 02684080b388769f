#include "core/ranking_metrics.h"

#include "core/check.h"
#include "core/nearest.h"

#include <fmt/ranges.h>

#include <cmath>

namespace gainlens {

std::string RankingMetric::name() const {
  const char* const base = kind == Kind::hit ? "hr" : kind == Kind::gain ? "ndcg" : "mrr";
  return cutoff == 0 ? base : fmt::format("{}@{}", base, cutoff);
}

std::string RankingMetric::title() const {
  std::string text = name();
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

double RankingMetric::value_at(double rank) const {
  if (cutoff != 0 && rank > static_cast<double>(cutoff)) return 0;
  switch (kind) {
    case Kind::hit:
      return 1;
    case Kind::gain:
      return 1 / std::log2(1 + rank);
    case Kind::reciprocal_rank:
      return 1 / rank;
  }
  throw_internal_error(__FILE__, __LINE__, "a metric of no kind");
}

const std::vector<RankingMetric>& ranking_metrics() {
  using enum RankingMetric::Kind;
  static const std::vector<RankingMetric> metrics = {
      {hit, 5}, {hit, 10}, {hit, 20}, {gain, 5}, {gain, 10}, {gain, 20}, {reciprocal_rank, 0}, {reciprocal_rank, 10}};
  return metrics;
}

RankingMetric parse_ranking_metric(const std::string& name) {
  std::vector<std::string> names;
  for (const RankingMetric& metric : ranking_metrics()) {
    names.push_back(metric.name());
    if (names.back() == name) return metric;
  }
  throw_invalid("metric: '{}'; must be one of {}{}", printable(name, 60), fmt::join(names, ", "),
                did_you_mean(name, names));
}

namespace {

template <typename Rank>
double mean_over(const RankingMetric& metric, std::span<const Rank> ranks) {
  ASSERT(!ranks.empty(), "{} of no ranks", metric.name());
  double sum = 0;
  for (const Rank rank : ranks) sum += metric.value_at(static_cast<double>(rank));
  return sum / static_cast<double>(ranks.size());
}

}  // namespace

double mean_of(const RankingMetric& metric, std::span<const float> ranks) {
  return mean_over(metric, ranks);
}

double mean_of(const RankingMetric& metric, std::span<const double> ranks) {
  return mean_over(metric, ranks);
}

}  // namespace gainlens
