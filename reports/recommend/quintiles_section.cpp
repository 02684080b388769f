#include "reports/recommend/run_sections.h"

#include "reports/recommend/paper_numbers.h"
#include "reports/recommend/quintiles_figure.h"
#include "reports/recommend/stratum_words.h"
#include "reports/words/numbers.h"

#include <algorithm>

namespace gainlens::reports {
namespace {

using analyses::ArmResult;
using analyses::RecommenderResults;
using analyses::SeedValues;
using analyses::StratifiedUsers;
using analyses::StratumKind;
using Strata = std::vector<std::vector<SeedValues>>;

/// One of the two ways of grouping users.
struct Grouping {
  const StratifiedUsers& users;
  Strata ArmResult::*strata;
  const char* stem;
};

std::vector<Grouping> groupings_of(const RecommenderResults& results) {
  return {{results.by_item, &ArmResult::by_item, "quintiles-items"},
          {results.by_user, &ArmResult::by_user, "quintiles-users"}};
}

PaperTable quintiles_table(const RecommenderResults& results, const Grouping& grouping) {
  PaperTable table{
      grouping.stem,
      stratum_rule(grouping.users) + " Metrics are on the test items: mean (standard deviation) over seeds.",
      {{stratum_heading(grouping.users.kind), true}, {"users"}, {"target count"}, {"known items"}},
      {}};
  for (const RankingMetric& metric : results.metrics) table.columns.push_back({metric.title()});
  for (const ArmResult& arm : results.arms) {
    if (results.arms.size() > 1) table.rows.push_back({arm.name});
    const Strata& strata = arm.*(grouping.strata);
    for (std::size_t i = 0; i < strata.size(); ++i) {
      const StratumComposition& who = grouping.users.composition[i];
      std::vector<std::string> row = {stratum_label(grouping.users, i), std::to_string(who.users),
                                      shown(who.mean_target_count), shown(who.mean_history_length)};
      for (const SeedValues& values : strata[i]) row.push_back(metric_number(values.over_seeds, arm.trained));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

/// The metric of the figure: that of the learning curves, if the strata have it.
std::size_t drawn_metric(const RecommenderResults& results) {
  for (std::size_t i = 0; i < results.metrics.size(); ++i) {
    if (results.metrics[i].name() == analyses::curve_metric) return i;
  }
  return 0;
}

CaptionedFigure captioned_figure(const RecommenderResults& results) {
  const std::size_t metric = drawn_metric(results);
  const Caption caption = {
      fmt::format("Mean {} of the users of each group, on the test items. {} The groups are those of the tables below.",
                  results.metrics[metric].title(), quintile_bars_in_words(results, metric)),
      "It shows whether rare items and users with few items are recommended as well as others.",
      "Bars of two arms that overlap do not show that the arms are alike: the same users are behind both. Groups of "
      "one kind may differ in the other kind too."};
  return {"quintiles", "Who is recommended well", caption, quintiles_figure(results, metric, "quintiles")};
}

std::vector<Block> quintiles_blocks(TrainedRuns runs) {
  const RecommenderResults& results = runs.front().results;
  std::vector<Block> all = {captioned_figure(results)};
  const bool folded = results.arms.size() > 2;
  if (folded) all.emplace_back(FoldStart{"The groups of all arms in numbers"});
  for (const Grouping& grouping : groupings_of(results)) all.emplace_back(quintiles_table(results, grouping));
  if (folded) all.emplace_back(FoldEnd{});
  // The comparisons below say it too.
  const std::string correlation = correlation_sentence(results.length_frequency_correlation);
  if (results.comparisons.empty() && !correlation.empty()) all.push_back(paragraph(correlation));
  return all;
}

void add_quintiles_json(const TrainedRun& trained, OrderedJson& summary) {
  const RecommenderResults& results = trained.results;
  summary["strata"] = OrderedJson::object();
  for (const Grouping& grouping : groupings_of(results)) {
    OrderedJson& json = summary["strata"][std::string(name_of(grouping.users.kind))];
    json = to_json(grouping.users);
    json["arms"] = OrderedJson::object();
    for (const ArmResult& arm : results.arms) {
      OrderedJson& arm_json = json["arms"][arm.name] = OrderedJson::object();
      for (std::size_t metric = 0; metric < results.metrics.size(); ++metric) {
        OrderedJson& values = arm_json[results.metrics[metric].name()] = OrderedJson::array();
        for (const auto& stratum : arm.*(grouping.strata)) values.push_back(to_json(stratum[metric]));
      }
    }
  }
  summary["length_frequency_correlation"] = results.length_frequency_correlation;  // NaN becomes null
}

/// One row for each group, arm, finished seed and metric.
std::vector<CsvTable> quintiles_tables(const TrainedRun& trained) {
  const RecommenderResults& results = trained.results;
  CsvTable table{"quintiles",
                 {"kind", "stratum", "label", "users", "mean_target_count", "mean_history_length", "arm", "seed",
                  "metric", "value"},
                 {}};
  for (const Grouping& grouping : groupings_of(results)) {
    for (const ArmResult& arm : results.arms) {
      const Strata& strata = arm.*(grouping.strata);
      for (std::size_t i = 0; i < strata.size(); ++i) {
        const StratumComposition& who = grouping.users.composition[i];
        for (std::size_t metric = 0; metric < strata[i].size(); ++metric) {
          const std::vector<double>& values = strata[i][metric].by_seed;  // empty: no user is in this group
          for (std::size_t seed = 0; seed < values.size(); ++seed)
            table.rows.push_back({std::string(name_of(grouping.users.kind)), static_cast<std::int64_t>(i + 1),
                                  stratum_label(grouping.users, i), who.users, who.mean_target_count,
                                  who.mean_history_length, arm.name, std::to_string(arm.finished[seed]),
                                  results.metrics[metric].name(), values[seed]});
        }
      }
    }
  }
  return {table};
}

}  // namespace

const Section<TrainedRun> quintiles_section = {
    .name = "quintiles",
    .title = "Who is recommended well",
    .question = "Are rare items and cold users recommended as well as others?",
    .files = {"quintiles", "quintiles-items", "quintiles-users"},
    .keys = {"strata", "length_frequency_correlation"},
    .blocks = quintiles_blocks,
    .add_json = add_quintiles_json,
    .tables = quintiles_tables};

}  // namespace gainlens::reports
