#include "reports/recommend/quintiles_figure.h"

#include "reports/figures/figure_parts.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"
#include "reports/recommend/stratum_words.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::ArmResult;
using analyses::RecommenderResults;
using analyses::SeedValues;
using analyses::StratifiedUsers;
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
    constexpr double no_value = std::numeric_limits<double>::quiet_NaN();
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

}  // namespace

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

}  // namespace gainlens::reports
