#include "core/strata.h"

#include "core/check.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace gainlens {
namespace {

constexpr std::size_t quintiles = 5;

/// Puts each user into the stratum that `stratum_of(user)` gives.
template <typename StratumOf>
Strata group(const UserCounts& counts, std::vector<std::int64_t> edges, const StratumOf& stratum_of) {
  Strata strata;
  strata.users.resize(edges.size() + 1);
  strata.edges = std::move(edges);
  for (std::size_t user = 0; user < counts.users(); ++user) {
    strata.stratum.push_back(stratum_of(user));
    ++strata.users[static_cast<std::size_t>(strata.stratum.back())];
  }
  return strata;
}

template <typename CountOf>
Strata group_by_count(const UserCounts& counts, std::vector<std::int64_t> edges, const CountOf& count_of) {
  for (std::size_t i = 1; i < edges.size(); ++i) {
    CHECK(edges[i - 1] < edges[i], "strata: edge {} after {}; edges must rise", edges[i], edges[i - 1]);
  }
  const std::vector<std::int64_t> bounds = edges;
  return group(counts, std::move(edges), [&](std::size_t user) {
    // The first edge that is not below the count: a count that equals an edge is below it.
    return std::lower_bound(bounds.begin(), bounds.end(), count_of(user)) - bounds.begin();
  });
}

/// Quintiles of the catalogue: equally many items in each.
Strata item_quintiles(const UserCounts& counts) {
  const std::vector<std::int64_t>& frequency = counts.item_train_count;
  std::vector<std::size_t> items(frequency.size());  // an item is its id - 1
  std::iota(items.begin(), items.end(), std::size_t{0});
  std::stable_sort(items.begin(), items.end(),
                   [&](std::size_t a, std::size_t b) { return frequency[a] < frequency[b]; });
  std::vector<std::int64_t> quintile(items.size());
  std::vector<std::int64_t> edges(quintiles);
  for (std::size_t place = 0; place < items.size(); ++place) {
    const std::size_t item = items[place], at = quintiles * place / items.size();
    quintile[item] = static_cast<std::int64_t>(at);
    // A catalogue of less than five items has empty groups: their edge is that of the group before them.
    for (std::size_t i = at; i < quintiles; ++i) edges[i] = frequency[item];
  }
  edges.pop_back();
  return group(counts, std::move(edges),
               [&](std::size_t user) { return quintile[static_cast<std::size_t>(counts.target[user] - 1)]; });
}

double pearson(const std::vector<std::int64_t>& x, const std::vector<std::int64_t>& y) {
  const auto n = static_cast<double>(x.size());
  const double mean_x = static_cast<double>(std::accumulate(x.begin(), x.end(), std::int64_t{0})) / n;
  const double mean_y = static_cast<double>(std::accumulate(y.begin(), y.end(), std::int64_t{0})) / n;
  double xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double dx = static_cast<double>(x[i]) - mean_x, dy = static_cast<double>(y[i]) - mean_y;
    xx += dx * dx, yy += dy * dy, xy += dx * dy;
  }
  return xy / std::sqrt(xx * yy);  // 0 / 0, which is NaN, if one of them does not vary
}

}  // namespace

std::vector<std::int64_t> quintile_edges(std::span<const std::int64_t> counts) {
  std::vector<std::int64_t> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> edges;
  for (std::size_t i = 1; i < quintiles && !sorted.empty(); ++i) {
    const std::size_t needed = (i * sorted.size() + quintiles - 1) / quintiles;  // rounded up
    const std::int64_t edge = sorted[needed - 1];
    if (edges.empty() || edges.back() < edge) edges.push_back(edge);
  }
  // A stratum above the largest count would be empty.
  while (!edges.empty() && edges.back() == sorted.back()) edges.pop_back();
  return edges;
}

std::vector<std::int64_t> printed_item_edges() {
  return {43, 84, 126, 198};
}

Strata by_item_frequency(const UserCounts& counts, std::vector<std::int64_t> edges) {
  if (edges.empty()) return item_quintiles(counts);
  return group_by_count(counts, std::move(edges), [&](std::size_t user) { return counts.target_count(user); });
}

Strata by_user_activity(const UserCounts& counts, std::vector<std::int64_t> edges) {
  if (edges.empty()) edges = quintile_edges(counts.training_length);
  return group_by_count(counts, std::move(edges), [&](std::size_t user) { return counts.training_length[user]; });
}

std::vector<StratumComposition> composition(const UserCounts& counts, const Strata& strata) {
  ASSERT(strata.stratum.size() == counts.users(), "strata of {} users for {}", strata.stratum.size(), counts.users());
  std::vector<StratumComposition> result(strata.users.size());
  for (std::size_t user = 0; user < counts.users(); ++user) {
    StratumComposition& stratum = result[static_cast<std::size_t>(strata.stratum[user])];
    ++stratum.users;
    stratum.mean_target_count += static_cast<double>(counts.target_count(user));
    stratum.mean_history_length += static_cast<double>(counts.history_length[user]);
  }
  for (StratumComposition& stratum : result) {
    // An empty stratum has no means: 0 / 0 is NaN.
    stratum.mean_target_count /= static_cast<double>(stratum.users);
    stratum.mean_history_length /= static_cast<double>(stratum.users);
  }
  return result;
}

double length_frequency_correlation(const UserCounts& counts) {
  std::vector<std::int64_t> frequency;
  for (std::size_t user = 0; user < counts.users(); ++user) frequency.push_back(counts.target_count(user));
  return pearson(counts.history_length, frequency);
}

}  // namespace gainlens
