#include "reports/recommend/compared_arms.h"
#include "reports/recommend/paper_numbers.h"
#include "reports/words/numbers.h"

#include <fmt/ranges.h>

#include <cmath>

namespace gainlens::reports {
namespace {

using analyses::PooledComparison;
using analyses::PooledDataSets;

const std::vector<PooledComparison>& pooled_of(Comparisons comparisons) {
  return comparisons.front().shared->pooled;
}

PaperTable pooled_table(const PooledComparison& pooled, std::size_t number) {
  PaperTable table{numbered_stem("pooled", number),
                   "",
                   {{"metric", true},
                    {"Fisher"},
                    {"Stouffer"},
                    {"sign flips"},
                    {"Stouffer"},
                    {"mean Δ"},
                    {"95% interval"},
                    {"p"},
                    {"r"}},
                   {},
                   {{"", 1}, {"naive p, seeds alone", 3}, {"p, seeds and users", 1}, {"random effects", 3}, {"", 1}}};
  table.caption = fmt::format(
      "{}: {} against {} over {}. Fisher and Stouffer join the data sets that are here; Fisher forgets the signs. "
      "Random "
      "effects ask whether data sets of this kind gain on average. Sign flips take a seed of all data sets together. "
      "\"r\" is the mean correlation of the differences between data sets: Fisher and Stouffer need it to be 0.",
      backbone_title(pooled.backbone), pooled.candidate_arm, pooled.baseline_arm,
      fmt::join(pooled.metrics.front().names, ", "));
  for (std::size_t i = 0; i < pooled.metrics.size(); ++i) {
    const PooledDataSets& metric = pooled.metrics[i];
    const auto& mean = metric.relative_gain;
    const auto p_of = [](const auto& test) { return test ? p_number(Measured(test->p)) : std::string("–"); };
    table.rows.push_back({pooled.names[i].title(), p_of(metric.naive_fisher), p_of(metric.naive_stouffer),
                          p_number(metric.flips.p), p_of(metric.crossed_stouffer),
                          mean ? change_number(std::expm1(mean->mean)) : "–",
                          mean ? change_interval(mean->interval) : "–", p_of(mean), shown(metric.seed_correlation)});
  }
  return table;
}

/// p of each data set after Holm's correction.
PaperTable holm_table(const PooledComparison& pooled, std::size_t number) {
  PaperTable table{
      numbered_stem("pooled-holm", number),
      fmt::format(
          "{}: {} against {}. p of each data set after Holm's correction over data sets. The naive p is that of "
          "the seeds alone.",
          backbone_title(pooled.backbone), pooled.candidate_arm, pooled.baseline_arm),
      {{"data set", true}},
      {},
      {{"", 1}}};
  for (const RankingMetric& metric : pooled.names) {
    table.spans.push_back({metric.title(), 2});
    table.columns.push_back({"seeds and users"});
    table.columns.push_back({"naive"});
  }
  const std::vector<std::string>& names = pooled.metrics.front().names;
  for (std::size_t set = 0; set < names.size(); ++set) {
    std::vector<std::string> row = {names[set]};
    for (const PooledDataSets& metric : pooled.metrics) {
      row.push_back(p_number(metric.crossed_holm[set]));
      row.push_back(p_number(metric.naive_holm[set]));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<Block> pooled_blocks(Comparisons comparisons) {
  std::vector<Block> all;
  const std::vector<PooledComparison>& pooled = pooled_of(comparisons);
  for (std::size_t i = 0; i < pooled.size(); ++i) {
    all.emplace_back(pooled_table(pooled[i], i));
    all.emplace_back(holm_table(pooled[i], i));
  }
  return all;
}

void add_common_pooled_json(Comparisons comparisons, OrderedJson& summary) {
  summary["pooled"] = OrderedJson::array();
  for (const PooledComparison& pooled : pooled_of(comparisons)) summary["pooled"].push_back(to_json(pooled));
}

}  // namespace

const Section<ComparedArms> pooled_section = {.name = "pooled",
                                              .title = "Over data sets",
                                              .question = "Do several data sets gain together?",
                                              .files = {"pooled", "pooled-holm"},
                                              .blocks = pooled_blocks,
                                              .add_common_json = add_common_pooled_json};

}  // namespace gainlens::reports
