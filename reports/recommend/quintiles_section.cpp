#include "reports/figures/figure_parts.h"
#include "reports/recommend/paper_numbers.h"
#include "reports/recommend/run_sections.h"
#include "reports/recommend/stratum_words.h"
#include "reports/words/numbers.h"

#include <algorithm>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::ArmResult, analyses::RecommenderResults, analyses::SeedValues, analyses::StratifiedUsers,
    analyses::StratumKind;

using Strata = std::vector<std::vector<SeedValues>>;

/// What is drawn of one panel.
struct Panel {
  const StratifiedUsers& users;
  Strata ArmResult::*strata;
  const char* name;
  const char* title;
};

/// stratum, mean, ends of its bar; a mean is never below 0
Rows rows_of(const ArmResult& arm, const Panel& panel, std::size_t metric, double shift) {
  Rows rows;
  const Strata& strata = arm.*(panel.strata);
  for (std::size_t stratum = 0; stratum < strata.size(); ++stratum) {
    const auto& summary = strata[stratum][metric].over_seeds;
    if (!summary) continue;
    const auto bar = analyses::shown_ends(strata[stratum][metric].crossed);
    rows.push_back({static_cast<double>(stratum + 1) + shift, summary->mean, bar ? std::max(bar->low, 0.0) : no_value,
                    bar ? bar->high : no_value});
  }
  return rows;
}

void draw_panel(PlotScript& script, const RecommenderResults& results, const Panel& panel, std::size_t metric) {
  std::string ticks, plot;
  double high = 0;
  const std::size_t strata = panel.users.strata.users.size(), arms = results.arms.size();
  for (std::size_t stratum = 0; stratum < strata; ++stratum)
    ticks += fmt::format("{}'{}' {}", stratum == 0 ? "" : ", ", stratum_name(panel.users, stratum), stratum + 1);
  for (std::size_t arm = 0; arm < arms; ++arm) {
    const RunStyle& style = run_style(arm);
    const double shift = 0.08 * (static_cast<double>(arm) - 0.5 * static_cast<double>(arms - 1));
    const Rows rows = rows_of(results.arms[arm], panel, metric, shift);
    if (rows.empty()) continue;
    const std::string block = fmt::format("{}_{}", panel.name, arm);
    script.data(block, rows);
    for (const auto& row : rows) high = std::max({high, row[1], any_finite({row}, 3) ? row[3] : 0});
    plot += barred_curve(block, rows, style, {1.2, 0.5, 1.3});
  }
  plot.resize(plot.size() - 2);
  script.line("set xrange [0.5:{}]", static_cast<double>(strata) + 0.5).line("set xtics ({})", ticks);
  script.y_axis(0, high > 0 ? high : 1, 0.06).line("plot {}", plot);
}

/// What the bars are, for the caption.
std::string quintile_bars_in_words(const RecommenderResults& results, std::size_t metric) {
  bool stated = false, range = false, users = false;
  for (const ArmResult& arm : results.arms) {
    for (const Strata& strata : {arm.by_item, arm.by_user}) {
      for (const auto& stratum : strata) {
        const auto& crossed = stratum[metric].crossed;
        stated = stated || (crossed && crossed->interval);
        range = range || (crossed && crossed->range);
        users = users || (crossed && crossed->over_units);
      }
    }
  }
  std::string text;
  if (stated) text += "Bars are 95% intervals over seeds and users; users with one test item count as one. ";
  if (range)
    text += "Bars of arms with two seeds, or of few test items, are ranges over seeds and users without a level. ";
  if (users) text += "Bars of arms with one seed are 95% intervals over users alone. ";
  if (!text.empty()) text.pop_back();
  return text.empty() ? "There are no bars, because no mean has an error." : text;
}

/// A metric of every arm by item frequency and by user activity: means over seeds, with bars that count seeds and
/// users. Missing if there are more arms than styles, or if all users are in one group of both kinds.
/// @param metric  position in RecommenderResults::metrics
/// @param name    stem of its files
Maybe<Figure> quintiles_figure(const RecommenderResults& results, std::size_t metric, const std::string& name) {
  if (results.arms.size() > max_runs) return too_many(results.arms.size(), "arms");
  std::vector<Panel> panels;
  if (results.by_item.strata.users.size() > 1)
    panels.push_back({results.by_item, &ArmResult::by_item, "items", "by item frequency"});
  if (results.by_user.strata.users.size() > 1)
    panels.push_back({results.by_user, &ArmResult::by_user, "users", "by user activity"});
  if (panels.empty()) return Maybe<Figure>::none("all users are in one group");
  std::vector<std::string> labels;
  for (const ArmResult& arm : results.arms) labels.push_back(arm.name);
  const std::vector<LegendEntry> legend = name_runs(labels);
  PanelGrid grid{page_width, 2.1};
  grid.columns = static_cast<int>(panels.size());
  grid.left = 0.5;
  grid.right = 0.16;    // half of the last label
  grid.bottom -= 0.12;  // no name of the axis: the title of the panel says it
  PanelFigure script(grid, legend);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    script.panel(i, fmt::format("{} {}", plain(results.metrics[metric].title()), panels[i].title));
    draw_panel(script, results, panels[i], metric);
  }
  return script.figure(name);
}

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
