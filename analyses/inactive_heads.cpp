#include "analyses/inactive_heads.h"

#include "analyses/heatmap.h"
#include "analyses/permutation.h"
#include "analyses/statistics.h"
#include "analyses/value_norms.h"
#include "core/check.h"
#include "core/counted.h"
#include "core/random.h"

#include <boost/math/distributions/beta.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace gainlens::analyses {
namespace {

constexpr double tail = (1 - confidence) / 2;
static_assert(2.0 / (1 + fewest_ranked_draws) <= significance && 2.0 / fewest_ranked_draws > significance);

/// The share of which so many of all are seen below, and no more, in `tail` of all samples.
double upper_share(std::size_t seen, std::size_t all) {
  if (seen == all) return 1;
  const boost::math::beta_distribution<> beta(static_cast<double>(seen + 1), static_cast<double>(all - seen));
  return boost::math::quantile(boost::math::complement(beta, tail));
}

constexpr const char* literature = "literature";
constexpr const char* filter_source = "filter";

/// A statistic of every head, [layer, head].
std::vector<double> statistic(const runfile::RunReader& reader, std::string_view name) {
  const Maybe<Heatmap> map = heatmap(reader, name);
  CHECK(map, "{}: {}", printable(reader.path().string()), map.reason());
  for (const double value : map->values)
    CHECK(std::isfinite(value), "{}: summary/{} has no number for some head; heads cannot be ordered by it",
          printable(reader.path().string()), name);
  return map->values;
}

/// Norms of values, of the KV head that each head reads.
std::vector<double> value_norm(const runfile::RunReader& reader, bool first) {
  const Maybe<ValueNormsResult> norms = value_norms(reader);
  CHECK(norms, "{}: {}", printable(reader.path().string()), norms.reason());
  const auto heads = static_cast<std::size_t>(reader.heads());
  std::vector<double> values(reader.layers().size() * heads, std::nan(""));
  for (const ValueNorms& norm : norms->heads) {
    for (std::size_t head = 0; head < heads; ++head) {
      if (reader.kv_head_of(norm.layer_position, static_cast<std::int64_t>(head)) == norm.kv_head)
        values[norm.layer_position * heads + head] = first ? norm.first.front() : norm.rest;
    }
  }
  for (const double value : values)
    CHECK(std::isfinite(value), "{}: values/norm has no number for some head", printable(reader.path().string()));
  return values;
}

/// Missing where it orders nothing: all heads of a layer have the score 0, or those of each layer the same one.
Maybe<std::vector<double>> over_layer_mean(std::vector<double> values, std::size_t heads) {
  bool differ = false;
  for (std::size_t head = 0; head < values.size(); ++head)
    differ = differ || values[head] != values[head / heads * heads];
  if (!differ)
    return Maybe<std::vector<double>>::none("all heads of a layer have the same score, as those of one KV head have");
  for (std::size_t begin = 0; begin < values.size(); begin += heads) {
    const std::span<double> layer(values.data() + begin, heads);
    const double centre = mean(layer);
    if (!(centre > 0)) {
      return Maybe<std::vector<double>>::none(fmt::format(
          "it is 0 in all heads of layer {} of those swept, as the weight of key 0 is where a window hides it",
          begin / heads));
    }
    for (double& value : layer) value /= centre;
  }
  return values;
}

/// Mean over shares from 0 on of a piecewise linear curve that starts at 0.
double area_of(const std::vector<double>& shares, const std::vector<double>& changes) {
  double area = 0, share = 0, change = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    area += (shares[i] - share) * (changes[i] + change) / 2;
    share = shares[i];
    change = changes[i];
  }
  return area / shares.back();
}

/// [document] areas of the curves of each.
std::vector<double> areas_of(const std::vector<double>& shares, const std::vector<std::vector<double>>& changes) {
  std::vector<double> areas(changes.front().size());
  for (std::size_t document = 0; document < areas.size(); ++document) {
    std::vector<double> curve(changes.size());
    std::ranges::transform(changes, curve.begin(), [&](const auto& at_share) { return at_share[document]; });
    areas[document] = area_of(shares, curve);
  }
  return areas;
}

std::vector<double> minus(std::vector<double> a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

std::vector<double> means_of(const std::vector<std::vector<double>>& changes) {
  std::vector<double> means(changes.size());
  std::ranges::transform(changes, means.begin(), [](const std::vector<double>& one) { return mean(one); });
  return means;
}

}  // namespace

Exceedance exceedance(double number, std::span<const double> draws) {
  ASSERT(!draws.empty(), "no draw");
  Exceedance found{
      draws.size(),
      0,
      0,
      {},
      Measured::none(fmt::format("a rank among fewer than {} draws cannot reach 5%", fewest_ranked_draws))};
  for (const double draw : draws) {
    const bool tie = is_rounding(draw - number, std::abs(draw) + std::abs(number));
    found.ties += tie ? 1 : 0;
    found.lower += !tie && draw < number ? 1 : 0;
  }
  const std::size_t higher = found.draws - found.lower - found.ties;
  found.share = {1 - upper_share(found.draws - found.lower, found.draws),
                 upper_share(found.lower + found.ties, found.draws)};
  if (found.draws < fewest_ranked_draws) return found;
  const std::size_t beyond = std::min(found.lower, higher) + found.ties + 1;
  found.p = std::min(1.0, 2 * static_cast<double>(beyond) / static_cast<double>(found.draws + 1));
  return found;
}

HeadScores head_scores(const runfile::RunReader& reader) {
  const auto heads = static_cast<std::size_t>(reader.heads());
  HeadScores found;
  const auto add = [&](const std::string& name, bool largest_first, const std::vector<double>& values) {
    found.scores.push_back({name, literature, largest_first, values});
    const auto relative = over_layer_mean(values, heads);
    if (relative) {
      found.scores.push_back({name + " / layer", literature, largest_first, *relative});
    } else {
      found.left_out.push_back(fmt::format("{} / layer: {}", name, relative.reason()));
    }
  };
  add("weight of key 0", true, statistic(reader, "bos_mass"));
  add("entropy", false, statistic(reader, "entropy"));
  add("|v_0|", false, value_norm(reader, true));
  add("mean |v|", false, value_norm(reader, false));
  add("|e|", false, statistic(reader, "estimate_norm"));
  const auto own = [&](const std::string& name, bool largest_first, std::string_view dataset) {
    found.scores.push_back({name, filter_source, largest_first, statistic(reader, dataset)});
  };
  own("n_eff", false, "n_eff");
  own("K", true, "kalman_gain");
  own("scaled K", true, "kalman_gain_scaled");
  own("|K o e|", false, "gained_estimate_norm");
  own("lambda_obs", true, "observation_precision");
  return found;
}

std::vector<std::size_t> order_of(const HeadScore& score) {
  std::vector<std::size_t> order(score.values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return score.largest_first ? score.values[a] > score.values[b] : score.values[a] < score.values[b];
  });
  return order;
}

std::vector<BrokenTie> broken_ties(const HeadScore& score) {
  const std::vector<std::size_t> order = order_of(score);
  const auto value = [&](std::size_t place) { return score.values[order[place]]; };
  std::vector<BrokenTie> ties;
  for (const std::size_t count : zeroed_counts(order.size())) {
    if (count == order.size() || value(count - 1) != value(count)) continue;
    std::size_t begin = count, end = count;
    while (begin > 0 && value(begin - 1) == value(count)) --begin;
    while (end < order.size() && value(end) == value(count)) ++end;
    ties.push_back({static_cast<double>(count) / static_cast<double>(order.size()), end - begin, count - begin});
  }
  return ties;
}

std::vector<std::size_t> random_order(std::size_t heads, std::uint64_t seed, std::size_t draw) {
  std::vector<std::size_t> order(heads);
  std::iota(order.begin(), order.end(), 0);
  Random(seed, 0x6865616473 + draw).shuffle(order);
  return order;
}

std::vector<std::size_t> zeroed_counts(std::size_t heads) {
  std::vector<std::size_t> counts;
  for (const double share : {0.05, 0.1, 0.15, 0.2, 0.25, 0.3}) {
    const auto count = static_cast<std::size_t>(std::lround(share * static_cast<double>(heads)));
    if (count >= 1 && (counts.empty() || count > counts.back())) counts.push_back(count);
  }
  CHECK(!counts.empty(), "{} heads are too few; 30% of them are none", heads);
  return counts;
}

InactiveHeads inactive_heads(const InactiveHeadsInput& input) {
  ASSERT(!input.scores.empty() && !input.shares.empty() && !input.by_random.empty() &&
             input.by_score.size() == input.scores.size(),
         "inactive heads: nothing to compare");
  const std::size_t documents = input.single.front().size();
  std::vector<double> area_of_draw;
  std::vector<double> random_changes(input.shares.size());
  const double share_of_draw = 1 / static_cast<double>(input.by_random.size());
  for (const auto& draw : input.by_random) {
    const std::vector<double> changes = means_of(draw);
    area_of_draw.push_back(mean(areas_of(input.shares, draw)));
    for (std::size_t i = 0; i < changes.size(); ++i) random_changes[i] += changes[i] * share_of_draw;
  }
  std::ranges::sort(area_of_draw);
  InactiveHeads result{documents,
                       input.single.size(),
                       input.shares,
                       {},
                       random_changes,
                       mean(area_of_draw),
                       area_of_draw,
                       {},
                       {},
                       0,
                       Maybe<Interval>::none("there is no score of a kind")};
  const std::vector<double> single = means_of(input.single);
  std::optional<std::size_t> best[2];  // literature, filter
  std::vector<std::vector<double>> areas;
  for (std::size_t i = 0; i < input.scores.size(); ++i) {
    const HeadScore& score = input.scores[i];
    areas.push_back(areas_of(input.shares, input.by_score[i]));
    const double area = mean(areas.back());
    std::vector<double> turned = score.values;  // inactive is small
    if (score.largest_first)
      for (double& value : turned) value = -value;
    result.curves.push_back({score.name, score.source, means_of(input.by_score[i]), area, mean_interval(areas.back()),
                             area - result.random_area, exceedance(area, area_of_draw),
                             correlation(turned, single, {"score", "change of the loss"}).spearman,
                             broken_ties(score)});
    std::optional<std::size_t>& leader = best[score.source == literature ? 0 : 1];
    if (!leader || area < mean(areas[*leader])) leader = i;
  }
  if (best[0] && best[1]) {
    const std::vector<double> difference = minus(areas[*best[1]], areas[*best[0]]);
    result.best_literature = input.scores[*best[0]].name;
    result.best_filter = input.scores[*best[1]].name;
    result.filter_minus_literature = mean(difference);
    result.filter_interval = mean_interval(difference);
  }
  std::ranges::stable_sort(result.curves, {}, &ScoreCurve::area);
  return result;
}

Table scores_of(const InactiveHeads& result) {
  Table table{
      "inactive-heads",
      fmt::format("Change of the loss, in nats per token, with these shares of heads set to zero; their mean from "
                  "0 on, and its 95% interval over documents. On these documents: how many of {} have a smaller "
                  "mean (95% for all orders), and p of a score that is a random order itself. Spearman: of the "
                  "score, turned so that inactive is small, with the change by each head alone.",
                  counted(result.area_of_draw.size(), "random order")),
      {{.key = "label", .heading = "score", .show = words, .csv = ""},
       {.key = "score", .heading = "", .show = words},
       {.key = "source", .heading = "", .show = words}}};
  for (const double share : result.shares) {
    const std::string heading = fmt::format("{:.0f}%", 100 * share);
    table.columns.push_back({.key = "change at " + heading, .heading = heading, .show = with_sign<4>});
  }
  table.columns.insert(
      table.columns.end(),
      {{.key = "area", .heading = "mean", .show = with_sign<4>},
       {.key = "interval", .heading = "95%", .show = ends_as(with_sign<4>), .csv = "area"},
       {.key = "against_random", .heading = "", .show = with_sign<4>},
       {.key = "random_better", .heading = "random better", .show = whole},
       {.key = "of", .heading = "", .show = whole, .csv = "random_orders"},
       {.key = "share_95", .heading = "95%", .show = ends_as(analyses::percent<0>), .csv = "random_better_share"},
       {.key = "random_p", .heading = "p", .show = fixed<3>},
       {.key = "spearman", .heading = "Spearman", .show = with_sign<2>}});
  for (const ScoreCurve& curve : result.curves) {
    std::vector<TableValue>& row = table.rows.emplace_back();
    row = {curve.source == filter_source ? curve.name + " (filter)" : curve.name, curve.name, curve.source};
    row.insert(row.end(), curve.changes.begin(), curve.changes.end());
    const Exceedance& among = curve.among_random;
    row.insert(row.end(), {curve.area, curve.interval, curve.against_random, among.lower, among.draws, among.share,
                           among.p, curve.spearman});
  }
  std::vector<TableValue>& row = table.rows.emplace_back();
  row = {"random heads", "random heads", "random"};
  row.insert(row.end(), result.random_changes.begin(), result.random_changes.end());
  row.emplace_back(result.random_area);
  row.resize(table.columns.size());
  return table;
}

Table ties_of(std::span<const ScoreCurve> curves) {
  Table table{
      "inactive-heads-ties",
      "ties: at these shares some heads of equal score are set to zero and some are not; those that come first in "
      "the model are.",
      {{.key = "score", .heading = "score", .show = words, .json = ""},
       {.key = "share", .heading = "share", .show = analyses::percent<0>},
       {.key = "equal", .heading = "equal heads", .show = whole},
       {.key = "taken", .heading = "set to zero", .show = whole}}};
  for (const ScoreCurve& curve : curves) {
    for (const BrokenTie& tie : curve.ties) table.rows.push_back({curve.name, tie.share, tie.equal, tie.taken});
  }
  return table;
}

OrderedJson to_json(const InactiveHeads& result) {
  OrderedJson json = {{"documents", result.documents}, {"heads", result.heads}, {"shares", result.shares}};
  json["random"] = {
      {"changes", result.random_changes}, {"area", result.random_area}, {"area_of_draw", result.area_of_draw}};
  json["scores"] = OrderedJson::array();
  for (const ScoreCurve& curve : result.curves) {
    OrderedJson& made = json["scores"].emplace_back(
        OrderedJson{{"score", curve.name}, {"source", curve.source}, {"changes", curve.changes}, {"area", curve.area}});
    put(made, "interval", curve.interval);
    made["against_random"] = curve.against_random;
    const Exceedance& among = curve.among_random;
    made["random_better"] = {
        {"draws", among.lower}, {"of", among.draws}, {"share_95", {among.share.low, among.share.high}}};
    put(made, "random_p", among.p);
    put(made, "spearman", curve.spearman);
    made["ties"] = to_json(ties_of({&curve, 1}));
  }
  json["best_literature"] = result.best_literature;
  json["best_filter"] = result.best_filter;
  json["filter_minus_literature"] = result.filter_minus_literature;
  put(json, "filter_minus_literature_interval", result.filter_interval);
  return json;
}

}  // namespace gainlens::analyses
