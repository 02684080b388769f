#include "core/list_metrics.h"

#include "core/check.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gainlens {
namespace {

/// [id - 1] whether an item belongs to the most frequent fifth of the catalogue, as in by_item_frequency().
std::vector<bool> most_frequent_fifth(std::span<const std::int64_t> counts) {
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return counts[a] < counts[b]; });
  std::vector<bool> frequent(counts.size());
  for (std::size_t place = 0; place < order.size(); ++place) frequent[order[place]] = 5 * place / order.size() == 4;
  return frequent;
}

}  // namespace

const std::vector<ListMetric>& list_metrics() {
  static const std::vector<ListMetric> metrics = {
      {"coverage@10", "coverage@10", "1", "share of the catalogue that stands in a list of 10"},
      {"novelty@10", "novelty@10", "bits", "mean over the places of all lists of 10 of log2(all / training count)"},
      {"popular@10", "popular@10", "1", "share of the places that hold an item of the most frequent fifth"}};
  return metrics;
}

std::map<std::string, double> metrics_of_lists(std::span<const std::int32_t> items,
                                               std::span<const std::int64_t> training_counts) {
  const double all =
      static_cast<double>(std::accumulate(training_counts.begin(), training_counts.end(), std::int64_t{0}));
  const std::vector<bool> frequent = most_frequent_fifth(training_counts);
  std::vector<bool> listed(training_counts.size());
  std::size_t places = 0, popular = 0;
  double bits = 0;
  for (const std::int32_t item : items) {
    if (item == 0) continue;
    const auto at = static_cast<std::size_t>(item - 1);
    ASSERT(item > 0 && at < training_counts.size(), "item {} of {}", item, training_counts.size());
    ++places;
    listed[at] = true;
    popular += frequent[at] ? 1 : 0;
    bits += std::log2(all / static_cast<double>(std::max<std::int64_t>(training_counts[at], 1)));
  }
  if (places == 0 || all == 0) return {};
  const auto covered = static_cast<double>(std::count(listed.begin(), listed.end(), true));
  return {{"coverage@10", covered / static_cast<double>(listed.size())},
          {"novelty@10", bits / static_cast<double>(places)},
          {"popular@10", static_cast<double>(popular) / static_cast<double>(places)}};
}

}  // namespace gainlens
