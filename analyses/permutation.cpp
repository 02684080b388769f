#include "analyses/permutation.h"

#include "core/random.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>

namespace gainlens::analyses {
namespace {

constexpr double most_arrangements = 1e300;  // counted no further
constexpr double rounding = 1e-12;           // of a correlation: sums of the same numbers in another order are ties
constexpr std::uint64_t block_stream = 0xB10C;

/// A layer's whole KV groups as a table of what each pairing of one group's x with another's y adds to the cross product.
struct LayerTable {
  std::size_t groups;
  std::vector<double> cross;          // [group whose y moves, group whose x stays]
  std::vector<std::size_t> identity;  // [group that moves] number of the first group with the same values
  double arrangements;                // distinct

  double at(std::size_t moved, std::size_t place) const { return cross[moved * groups + place]; }
};

/// The cross products of one statistic (Pearson or Spearman) over all layers.
struct Tables {
  std::vector<LayerTable> layers;
  double x_squares = 0, y_squares = 0;

  double scale() const { return std::sqrt(x_squares * y_squares); }
  double observed() const {
    double sum = 0;
    for (const LayerTable& layer : layers) {
      for (std::size_t group = 0; group < layer.groups; ++group) sum += layer.at(group, group);
    }
    return sum;
  }
};

/// [group][slot] the values of one layer's whole groups.
using Blocks = std::vector<std::vector<double>>;

std::vector<std::size_t> identities(const Blocks& blocks) {
  std::vector<std::size_t> first;
  for (const auto& block : blocks)
    first.push_back(static_cast<std::size_t>(std::find(blocks.begin(), blocks.end(), block) - blocks.begin()));
  return first;
}

/// n! / (multiplicities!), at most `most_arrangements`.
double distinct_orders(const std::vector<std::size_t>& identity) {
  std::map<std::size_t, double> seen;
  double orders = 1, placed = 0;
  for (const std::size_t number : identity) orders = std::min(orders * ++placed / ++seen[number], most_arrangements);
  return std::round(orders);
}

/// Values less their mean, or exact zeros where all are equal: rounding must not look like variation.
void centre(Blocks& blocks, double& squares) {
  std::vector<double> all;
  for (const auto& block : blocks) all.insert(all.end(), block.begin(), block.end());
  const bool constant = std::all_of(all.begin(), all.end(), [&](double value) { return value == all.front(); });
  const double middle = constant ? all.front() : mean(all);
  for (auto& block : blocks) {
    for (double& value : block) {
      value -= middle;
      squares += value * value;
    }
  }
}

void rank(Blocks& blocks) {
  std::vector<double> all;
  for (const auto& block : blocks) all.insert(all.end(), block.begin(), block.end());
  const std::vector<double> ranks = average_ranks(all);
  std::size_t next = 0;
  for (auto& block : blocks) {
    for (double& value : block) value = ranks[next++];
  }
}

void add_layer(Tables& tables, Blocks x, Blocks y) {
  const auto x_identity = identities(x), y_identity = identities(y);
  const double x_orders = distinct_orders(x_identity), y_orders = distinct_orders(y_identity);
  centre(x, tables.x_squares);
  centre(y, tables.y_squares);
  // Moving the x against the y is the same test: the side with fewer distinct orders has fewer repeats among them.
  const bool move_x = x_orders < y_orders;
  const Blocks &moved = move_x ? x : y, &kept = move_x ? y : x;
  LayerTable table{x.size(), {}, move_x ? x_identity : y_identity, std::min(x_orders, y_orders)};
  for (const auto& from : moved) {
    for (const auto& to : kept) table.cross.push_back(std::inner_product(from.begin(), from.end(), to.begin(), 0.0));
  }
  tables.layers.push_back(std::move(table));
}

/// Whole KV groups of layers that have at least two of them.
std::vector<std::pair<Blocks, Blocks>> whole_groups(const ClusteredPairs& pairs) {
  std::map<std::size_t, std::map<std::size_t, std::map<std::size_t, std::size_t>>> points;  // layer, group, head -> point
  for (std::size_t i = 0; i < pairs.x.size(); ++i) points[pairs.layer[i]][pairs.head[i] / pairs.group_size][pairs.head[i]] = i;
  std::vector<std::pair<Blocks, Blocks>> layers;
  for (const auto& [layer, groups] : points) {
    Blocks x, y;
    for (const auto& [group, heads] : groups) {
      if (heads.size() < pairs.group_size) continue;
      x.emplace_back();
      y.emplace_back();
      for (const auto& [head, point] : heads) {
        x.back().push_back(pairs.x[point]);
        y.back().push_back(pairs.y[point]);
      }
    }
    if (x.size() >= 2) layers.emplace_back(std::move(x), std::move(y));
  }
  return layers;
}

/// Cross products of every distinct arrangement of all layers, each as probable as any other.
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

std::size_t at_least(const std::vector<double>& sums, double bound, double scale) {
  return static_cast<std::size_t>(
      std::count_if(sums.begin(), sums.end(), [&](double sum) { return std::abs(sum) >= bound - rounding * scale; }));
}

double largest(const std::vector<double>& sums) {
  double most = 0;
  for (const double sum : sums) most = std::max(most, std::abs(sum));
  return most;
}

/// The p, or the refusal where none small enough can be reached.
Measured allowed(double p, double least_p, double arrangements) {
  if (least_p > significance) {
    return Measured::none(fmt::format("refused: with {} no p below {:.2g} can be reached", count_arrangements(arrangements), least_p));
  }
  return p;
}

TestedStatistic no_statistic(const std::string& reason) {
  return {Measured::none(reason), Measured::none(reason), Measured::none(reason)};
}

/// Of sums over all arrangements; `sums` holds that of the data.
TestedStatistic judge_all(const std::vector<double>& sums, double observed, double scale) {
  const auto all = static_cast<double>(sums.size());
  const double least = static_cast<double>(at_least(sums, largest(sums), scale)) / all;
  const double p = static_cast<double>(at_least(sums, std::abs(observed), scale)) / all;
  return {observed / scale, least, allowed(p, least, all)};
}

TestedStatistic judge_drawn(const std::vector<double>& sums, const Tables& tables, double arrangements) {
  const double observed = tables.observed();
  const double drawn = static_cast<double>(sums.size());
  // an arrangement and its mirror image may tie; among so many no more than that is of weight
  const double least = std::max(1 / (1 + drawn), 2 / arrangements);
  const double p = (1 + static_cast<double>(at_least(sums, std::abs(observed), tables.scale()))) / (1 + drawn);
  return {observed / tables.scale(), least, allowed(p, least, arrangements)};
}

std::string no_variation(const Tables& tables, const PairNames& names) {
  if (tables.layers.empty()) return "refused: 1 arrangement, as no layer has two KV groups with a value for every head";
  if (!(tables.x_squares > 0)) return fmt::format("{} is constant within layers", names.x);
  if (!(tables.y_squares > 0)) return fmt::format("{} is constant within layers", names.y);
  return {};
}

/// Draws arrangements for both statistics at once.
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
  test.pearson = judge_drawn(value_sums, values, test.arrangements);
  test.spearman = judge_drawn(rank_sums, ranks, test.arrangements);
}

/// Values of all heads of contiguous layers, [layer * heads + head], or why there are none.
struct Grid {
  std::size_t layers = 0, heads = 0;
  std::vector<double> x, y;
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
    grid.refusal = "refused: the layers are not contiguous";
    return grid;
  }
  for (const auto& [layer, heads] : points) {
    const bool whole = heads.size() == grid.heads && heads.rbegin()->first + 1 == heads.size();
    if (!whole) grid.refusal = "refused: a layer lacks the value of a head";
    for (const auto& [head, point] : heads) {
      grid.x.push_back(pairs.x[point]);
      grid.y.push_back(pairs.y[point]);
    }
  }
  return grid;
}

TestedStatistic shift(const Grid& grid, Blocks x, Blocks y, const PairNames& names) {
  double x_squares = 0, y_squares = 0;
  centre(x, x_squares);
  centre(y, y_squares);
  if (!(x_squares > 0)) return no_statistic(fmt::format("{} is constant", names.x));
  if (!(y_squares > 0)) return no_statistic(fmt::format("{} is constant", names.y));
  std::vector<double> sums;
  for (std::size_t by = 0; by < grid.layers; ++by) {
    double sum = 0;
    for (std::size_t i = 0; i < x.front().size(); ++i) sum += x.front()[i] * y.front()[(i + by * grid.heads) % y.front().size()];
    sums.push_back(sum);
  }
  return judge_all(sums, sums.front(), std::sqrt(x_squares * y_squares));
}

OrderedJson to_json(const TestedStatistic& statistic) {
  OrderedJson json;
  put(json, "value", statistic.value);
  put(json, "p", statistic.p);
  put(json, "least_attainable_p", statistic.least_p);
  return json;
}

}  // namespace

PermutationTest permute_blocks(const ClusteredPairs& pairs, const Resampling& resampling) {
  ASSERT(pairs.group_size > 0, "KV groups of no head");
  Tables values, ranks;
  for (const auto& [x, y] : whole_groups(pairs)) {
    add_layer(values, x, y);
    Blocks x_ranks = x, y_ranks = y;
    rank(x_ranks);
    rank(y_ranks);
    add_layer(ranks, std::move(x_ranks), std::move(y_ranks));
  }
  double arrangements = 1;
  for (const LayerTable& layer : values.layers) arrangements = std::min(arrangements * layer.arrangements, most_arrangements);
  const bool exact = arrangements <= static_cast<double>(resampling.permutations);
  const std::string reason = no_variation(values, pairs.names);
  const TestedStatistic unset = no_statistic(reason.empty() ? "not tested yet" : reason);
  PermutationTest test{arrangements,    exact, exact ? static_cast<std::int64_t>(arrangements) : resampling.permutations,
                       resampling.seed, unset, unset};
  if (values.layers.empty()) test.pearson.least_p = test.spearman.least_p = 1.0;
  if (!reason.empty()) return test;
  if (exact) {
    test.pearson = judge_all(enumerate(values), values.observed(), values.scale());
    test.spearman = judge_all(enumerate(ranks), ranks.observed(), ranks.scale());
  } else {
    draw(values, ranks, resampling, test);
  }
  return test;
}

PermutationTest shift_layers(const ClusteredPairs& pairs, const std::optional<std::string>& mixed) {
  const Grid grid = grid_of(pairs);
  const auto layers = static_cast<double>(grid.layers);
  PermutationTest test{layers,
                       true,
                       static_cast<std::int64_t>(grid.layers),
                       0,
                       no_statistic("no head has both values"),
                       no_statistic("no head has both values")};
  if (grid.layers == 0) return test;
  const std::string refusal = mixed ? "refused: " + *mixed : grid.refusal;
  if (!refusal.empty()) {
    test.pearson = test.spearman = {Measured::none(refusal), 1 / layers, Measured::none(refusal)};
    return test;
  }
  test.pearson = shift(grid, {grid.x}, {grid.y}, pairs.names);
  test.spearman = shift(grid, {average_ranks(grid.x)}, {average_ranks(grid.y)}, pairs.names);
  return test;
}

std::string count_arrangements(double arrangements) {
  if (arrangements == 1) return "1 arrangement";
  if (arrangements >= most_arrangements) return "1e300 or more arrangements";
  return arrangements < 1e6 ? fmt::format("{:.0f} arrangements", arrangements) : fmt::format("{:.1e} arrangements", arrangements);
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
