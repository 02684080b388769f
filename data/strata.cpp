#include "data/strata.h"

#include "core/check.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace gainlens::data {
namespace {

constexpr std::size_t quintiles = 5;

std::int64_t test_count(const LeaveOneOut& split, std::int64_t user) {
  return split.training_counts()[static_cast<std::size_t>(split.target(user, HeldOut::test))];
}

/// Puts each user into the stratum that `stratum_of(user)` gives.
Strata group(const LeaveOneOut& split, std::vector<std::int64_t> edges,
             const std::function<std::int64_t(std::int64_t)>& stratum_of) {
  Strata strata;
  strata.users.resize(edges.size() + 1);
  strata.edges = std::move(edges);
  for (std::int64_t user = 0; user < split.users(); ++user) {
    strata.stratum.push_back(stratum_of(user));
    ++strata.users[static_cast<std::size_t>(strata.stratum.back())];
  }
  return strata;
}

Strata group_by_count(const LeaveOneOut& split, std::vector<std::int64_t> edges,
                      const std::function<std::int64_t(std::int64_t)>& count_of) {
  for (std::size_t i = 1; i < edges.size(); ++i) {
    CHECK(edges[i - 1] < edges[i], "strata: edge {} after {}; edges must rise", edges[i], edges[i - 1]);
  }
  const std::vector<std::int64_t> bounds = edges;
  return group(split, std::move(edges), [&](std::int64_t user) {
    // The first edge that is not below the count: a count that equals an edge is below it.
    return std::lower_bound(bounds.begin(), bounds.end(), count_of(user)) - bounds.begin();
  });
}

/// Quintiles of the catalogue: equally many items in each.
Strata item_quintiles(const LeaveOneOut& split) {
  const auto& counts = split.training_counts();
  std::vector<ItemId> items(static_cast<std::size_t>(split.items()));
  std::iota(items.begin(), items.end(), 1);
  std::stable_sort(items.begin(), items.end(), [&](ItemId a, ItemId b) {
    return counts[static_cast<std::size_t>(a)] < counts[static_cast<std::size_t>(b)];
  });
  std::vector<std::int64_t> quintile(items.size() + 1);  // [item id]
  std::vector<std::int64_t> edges(quintiles);
  for (std::size_t place = 0; place < items.size(); ++place) {
    const auto item = static_cast<std::size_t>(items[place]);
    const std::size_t at = quintiles * place / items.size();
    quintile[item] = static_cast<std::int64_t>(at);
    // A catalogue of less than five items has empty groups: their edge is that of the group before them.
    for (std::size_t i = at; i < quintiles; ++i) edges[i] = counts[item];
  }
  edges.pop_back();
  return group(split, std::move(edges), [&](std::int64_t user) {
    return quintile[static_cast<std::size_t>(split.target(user, HeldOut::test))];
  });
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

Strata by_item_frequency(const LeaveOneOut& split, std::vector<std::int64_t> edges) {
  if (edges.empty()) return item_quintiles(split);
  return group_by_count(split, std::move(edges), [&](std::int64_t user) { return test_count(split, user); });
}

Strata by_user_activity(const LeaveOneOut& split, std::vector<std::int64_t> edges) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t user = 0; user < split.users(); ++user) lengths.push_back(std::ssize(split.training(user)));
  if (edges.empty()) edges = quintile_edges(lengths);
  return group_by_count(split, std::move(edges),
                        [&](std::int64_t user) { return lengths[static_cast<std::size_t>(user)]; });
}

std::vector<StratumComposition> composition(const LeaveOneOut& split, const Strata& strata) {
  ASSERT(std::ssize(strata.stratum) == split.users(), "strata of {} users for {}", strata.stratum.size(),
         split.users());
  std::vector<StratumComposition> result(strata.users.size());
  for (std::int64_t user = 0; user < split.users(); ++user) {
    auto& stratum = result[static_cast<std::size_t>(strata.stratum[static_cast<std::size_t>(user)])];
    ++stratum.users;
    stratum.mean_target_count += static_cast<double>(test_count(split, user));
    stratum.mean_history_length += static_cast<double>(split.history(user, HeldOut::test).size());
  }
  for (StratumComposition& stratum : result) {
    // An empty stratum has no means: 0 / 0 is NaN.
    stratum.mean_target_count /= static_cast<double>(stratum.users);
    stratum.mean_history_length /= static_cast<double>(stratum.users);
  }
  return result;
}

double length_frequency_correlation(const LeaveOneOut& split) {
  std::vector<std::int64_t> lengths, counts;
  for (std::int64_t user = 0; user < split.users(); ++user) {
    lengths.push_back(std::ssize(split.history(user, HeldOut::test)));
    counts.push_back(test_count(split, user));
  }
  return pearson(lengths, counts);
}

}  // namespace gainlens::data
