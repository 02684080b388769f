#include "analyses/permutation.h"
#include "analyses/permutation_parts.h"

#include <map>
#include <numeric>
#include <utility>

namespace gainlens::analyses {
namespace {

/// Values of all heads of contiguous layers, [layer][head], or the reason why they are not usable.
struct Grid {
  std::size_t layers = 0, heads = 0;
  Blocks x, y;
  std::string refusal;
};

Grid grid_of(const ClusteredPairs& pairs) {
  std::map<std::size_t, std::map<std::size_t, std::size_t>> points;  // layer, head -> point
  for (std::size_t i = 0; i < pairs.x.size(); ++i) points[pairs.layer[i]][pairs.head[i]] = i;
  Grid grid;
  grid.layers = points.size();
  if (points.empty()) return grid;
  grid.heads = points.begin()->second.size();
  if (points.rbegin()->first - points.begin()->first + 1 != points.size()) {
    grid.refusal = "not testable: the layers are not contiguous";
    return grid;
  }
  for (const auto& [layer, heads] : points) {
    const bool whole = heads.size() == grid.heads && heads.rbegin()->first + 1 == heads.size();
    if (!whole) grid.refusal = "not testable: a layer has no value for one of its heads";
    grid.x.emplace_back();
    grid.y.emplace_back();
    for (const auto& [head, point] : heads) {
      grid.x.back().push_back(pairs.x[point]);
      grid.y.back().push_back(pairs.y[point]);
    }
  }
  return grid;
}

TestedStatistic shift(Blocks x, Blocks y, const PairNames& names) {
  Sums sums;
  sums.reported.add(without_mean(x), without_mean(y));
  x = without_slot_means(std::move(x));
  y = without_slot_means(std::move(y));
  sums.moved.add(x, y);
  if (const auto nothing = nothing_to_arrange(sums, names, "is constant", "is the same in every layer"))
    return *nothing;
  std::vector<double> crosses;
  for (std::size_t by = 0; by < x.size(); ++by) {
    double cross = 0;
    for (std::size_t layer = 0; layer < x.size(); ++layer) {
      const std::vector<double>& moved = y[(layer + by) % y.size()];
      cross = std::inner_product(moved.begin(), moved.end(), x[layer].begin(), cross);
    }
    crosses.push_back(cross);
  }
  return judge_all(crosses, sums);
}

}  // namespace

PermutationTest shift_layers(const ClusteredPairs& pairs, const std::optional<std::string>& mixed) {
  Grid grid = grid_of(pairs);
  const auto layers = static_cast<double>(grid.layers);
  const TestedStatistic none = no_statistic("no head has both values");
  PermutationTest test{.arrangements = layers,
                       .exact = true,
                       .resamples = static_cast<std::int64_t>(grid.layers),
                       .seed = 0,
                       .pearson = none,
                       .spearman = none};
  if (grid.layers == 0) return test;
  const std::string refusal = mixed ? "not testable: " + *mixed : grid.refusal;
  if (!refusal.empty()) {
    const Measured missing = Measured::none(refusal);
    test.pearson = {.value = missing, .null_mean = missing, .min_p = 1 / layers, .p = missing};
    test.spearman = test.pearson;
    return test;
  }
  grid.x = same_where_alike(std::move(grid.x));
  grid.y = same_where_alike(std::move(grid.y));
  test.pearson = shift(grid.x, grid.y, pairs.names);
  test.spearman = shift(ranked(grid.x), ranked(grid.y), pairs.names);
  return test;
}

}  // namespace gainlens::analyses
