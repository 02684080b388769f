#include "analyses/permutation.h"

#include "analyses/permutation_parts.h"
#include "core/check.h"
#include "core/random.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>

namespace gainlens::analyses {
namespace {

constexpr double max_arrangements = 1e300;  // counted no further
constexpr std::uint64_t block_stream = 0xB10C;

/// The complete KV groups of a layer: what each pairing of one group's x with another's y adds to the cross product.
struct LayerTable {
  std::size_t groups;
  std::vector<double> cross;          // [group whose y moves, group whose x stays]
  std::vector<std::size_t> identity;  // [group that moves] number of the first group with the same values
  double arrangements;                // distinct

  double at(std::size_t moved, std::size_t place) const { return cross[moved * groups + place]; }
};

/// The cross products of one statistic (Pearson or Spearman) over all layers, of values minus their slot means.
struct Tables {
  std::vector<LayerTable> layers;
  Sums sums;
};

std::vector<std::size_t> identities(const Blocks& blocks) {
  std::vector<std::size_t> first;
  for (const auto& block : blocks)
    first.push_back(static_cast<std::size_t>(std::find(blocks.begin(), blocks.end(), block) - blocks.begin()));
  return first;
}

/// n! / (multiplicities!), at most `max_arrangements`.
double distinct_orders(const std::vector<std::size_t>& identity) {
  std::map<std::size_t, double> seen;
  double orders = 1, placed = 0;
  for (const std::size_t number : identity) orders = std::min(orders * ++placed / ++seen[number], max_arrangements);
  return std::round(orders);
}

void add_layer(Tables& tables, Blocks x, Blocks y) {
  const auto x_identity = identities(x), y_identity = identities(y);
  const double x_orders = distinct_orders(x_identity), y_orders = distinct_orders(y_identity);
  tables.sums.reported.add(without_mean(x), without_mean(y));
  x = without_slot_means(std::move(x));
  y = without_slot_means(std::move(y));
  tables.sums.moved.add(x, y);
  // Moving the x instead of the y is the same test. The side with fewer distinct orders gives fewer repeated ones.
  const bool move_x = x_orders < y_orders;
  const Blocks &moved = move_x ? x : y, &kept = move_x ? y : x;
  LayerTable table{x.size(), {}, move_x ? x_identity : y_identity, std::min(x_orders, y_orders)};
  for (const auto& from : moved) {
    for (const auto& to : kept) table.cross.push_back(std::inner_product(from.begin(), from.end(), to.begin(), 0.0));
  }
  tables.layers.push_back(std::move(table));
}

/// A KV group by its place; `operator<=>` orders by layer first.
struct KvGroup {
  std::size_t layer, number;
  auto operator<=>(const KvGroup&) const = default;  // NOLINT(modernize-use-nullptr): of the default
};

/// x and y of every layer with at least two complete KV groups: blocks [group] of the values of its query heads.
std::vector<std::pair<Blocks, Blocks>> complete_groups(const ClusteredPairs& pairs) {
  std::map<KvGroup, std::vector<std::size_t>> points_of;
  for (std::size_t point = 0; point < pairs.x.size(); ++point)
    points_of[{pairs.layer[point], pairs.head[point] / pairs.group_size_of(pairs.layer[point])}].push_back(point);
  std::map<std::size_t, std::pair<Blocks, Blocks>> by_layer;
  for (auto& [group, points] : points_of) {
    if (points.size() < pairs.group_size_of(group.layer)) continue;
    std::ranges::sort(points, {}, [&](std::size_t point) { return pairs.head[point]; });
    auto& [x, y] = by_layer[group.layer];
    x.emplace_back();
    y.emplace_back();
    for (const std::size_t point : points) {
      x.back().push_back(pairs.x[point]);
      y.back().push_back(pairs.y[point]);
    }
  }
  std::vector<std::pair<Blocks, Blocks>> layers;
  for (auto& [layer, blocks] : by_layer) {
    auto& [x, y] = blocks;
    if (x.size() >= 2) layers.emplace_back(same_where_alike(std::move(x)), same_where_alike(std::move(y)));
  }
  return layers;
}

/// Cross products of every distinct permutation of all layers, all equally probable.
std::vector<double> enumerate(const Tables& tables) {
  std::vector<double> sums = {0};
  for (const LayerTable& layer : tables.layers) {
    std::vector<std::size_t> order = layer.identity;
    std::sort(order.begin(), order.end());
    std::vector<double> next;
    do {
      double here = 0;
      for (std::size_t place = 0; place < order.size(); ++place) here += layer.at(order[place], place);
      for (const double sum : sums) next.push_back(sum + here);
    } while (std::next_permutation(order.begin(), order.end()));
    sums = std::move(next);
  }
  return sums;
}

std::optional<TestedStatistic> nothing_to_arrange(const Tables& tables, const PairNames& names) {
  if (tables.layers.empty()) {
    const std::string reason =
        "not testable: it takes at least 2 KV heads in a layer, with a value for each of their query heads";
    return TestedStatistic{Measured::none(reason), Measured::none(reason), 1.0, Measured::none(reason)};
  }
  return nothing_to_arrange(tables.sums, names, "is constant within layers",
                            "does not differ between the KV groups of any layer");
}

/// Draws permutations for both statistics at once.
void draw(const Tables& values, const Tables& ranks, const Resampling& resampling, PermutationTest& test) {
  Random random(resampling.seed, block_stream);
  std::vector<std::vector<std::size_t>> order;
  for (const LayerTable& layer : values.layers) {
    order.emplace_back(layer.groups);
    std::iota(order.back().begin(), order.back().end(), std::size_t{0});
  }
  std::vector<double> value_sums, rank_sums;
  for (std::int64_t i = 0; i < resampling.permutations; ++i) {
    double value_sum = 0, rank_sum = 0;
    for (std::size_t layer = 0; layer < order.size(); ++layer) {
      random.shuffle(order[layer]);
      for (std::size_t place = 0; place < order[layer].size(); ++place) {
        value_sum += values.layers[layer].at(order[layer][place], place);
        rank_sum += ranks.layers[layer].at(order[layer][place], place);
      }
    }
    value_sums.push_back(value_sum);
    rank_sums.push_back(rank_sum);
  }
  test.pearson = judge_drawn(value_sums, values.sums, test.arrangements);
  test.spearman = judge_drawn(rank_sums, ranks.sums, test.arrangements);
}

OrderedJson to_json(const TestedStatistic& statistic) {
  OrderedJson json;
  put(json, "value", statistic.value);
  put(json, "null_mean", statistic.null_mean);
  put(json, "p", statistic.p);
  put(json, "least_attainable_p", statistic.min_p);
  return json;
}

}  // namespace

PermutationTest permute_blocks(const ClusteredPairs& pairs, const Resampling& resampling) {
  ASSERT(pairs.group_size > 0, "KV groups of no head");
  Tables values, ranks;
  for (const auto& [x, y] : complete_groups(pairs)) {
    add_layer(values, x, y);
    add_layer(ranks, ranked(x), ranked(y));
  }
  double arrangements = 1;
  for (const LayerTable& layer : values.layers)
    arrangements = std::min(arrangements * layer.arrangements, max_arrangements);
  const bool exact = arrangements <= static_cast<double>(resampling.permutations);
  const TestedStatistic unset = no_statistic("not tested yet");
  PermutationTest test{
      arrangements,    exact, exact ? static_cast<std::int64_t>(arrangements) : resampling.permutations,
      resampling.seed, unset, unset};
  const auto nothing = nothing_to_arrange(values, pairs.names), no_ranks = nothing_to_arrange(ranks, pairs.names);
  ASSERT(nothing.has_value() == no_ranks.has_value(), "values vary where their ranks do not");
  if (nothing) {
    test.pearson = *nothing;
    test.spearman = *no_ranks;
  } else if (exact) {
    test.pearson = judge_all(enumerate(values), values.sums);
    test.spearman = judge_all(enumerate(ranks), ranks.sums);
  } else {
    draw(values, ranks, resampling, test);
  }
  return test;
}

std::string count_arrangements(double arrangements) {
  if (arrangements == 1) return "1 permutation";
  if (arrangements >= max_arrangements) return "1e300 or more permutations";
  return arrangements < 1e6 ? fmt::format("{:.0f} permutations", arrangements)
                            : fmt::format("{:.1e} permutations", arrangements);
}

OrderedJson to_json(const PermutationTest& test) {
  OrderedJson json;
  json["distinct_arrangements"] = test.arrangements;
  json["exact"] = test.exact;
  json["resamples"] = test.resamples;
  json["seed"] = test.seed;
  json["pearson"] = to_json(test.pearson);
  json["spearman"] = to_json(test.spearman);
  return json;
}

}  // namespace gainlens::analyses
