#include "reports/figures/figure_parts.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"
#include "reports/recommend/gain_by_report.h"
#include "reports/recommend/paper_numbers.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::ConditionGain;

/// The conditions of all candidates, from the smallest to the largest.
Extent conditions_of(std::span<const CandidateGains> candidates) {
  Extent extent;
  for (const CandidateGains& one : candidates) {
    for (const ConditionGain& point : one.gains->points) extent.add(point.condition);
  }
  return extent;
}

/// condition, change, ends of its interval; changes in percent
Rows rows_of(const CandidateGains& candidate, std::size_t metric, double shift) {
  Rows rows;
  for (const ConditionGain& point : candidate.gains->points) {
    const auto& change = point.comparison.metrics[metric].log_ratio;
    if (!change) continue;
    Maybe<Interval> ends = change_ends(change);
    if (ends) ends = Interval{100 * ends->low, 100 * ends->high};
    rows.push_back(barred_point(point.condition + shift, 100 * std::expm1(change->value), ends));
  }
  return rows;
}

}  // namespace

Maybe<Figure> gain_by_figure(std::span<const CandidateGains> candidates) {
  if (candidates.size() > max_runs) return too_many(candidates.size(), "candidates");
  const auto& metrics = candidates.front().gains->points.front().comparison.metrics;
  const Extent across = conditions_of(candidates);
  const double step = 0.012 * (across.high > across.low ? across.high - across.low : 1);
  std::vector<std::vector<Rows>> rows(metrics.size());  // [metric][candidate]
  std::vector<Extent> reach(metrics.size(), {0, 0});    // of the y axes; 0 is on each of them
  bool any = false;
  for (std::size_t metric = 0; metric < metrics.size(); ++metric) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const double shift = step * (static_cast<double>(i) - 0.5 * static_cast<double>(candidates.size() - 1));
      rows[metric].push_back(rows_of(candidates[i], metric, shift));
      any = any || !rows[metric].back().empty();
      reach[metric].add(rows[metric].back(), {1, 2, 3});
    }
  }
  if (!any) return Maybe<Figure>::none("no comparison has a change");

  std::vector<std::string> labels;
  for (const CandidateGains& one : candidates) labels.push_back(one.label());
  const std::vector<LegendEntry> legend = name_runs(labels);
  PanelGrid grid{page_width, 2.1};
  grid.columns = static_cast<int>(metrics.size());
  grid.left = 0.5;
  grid.right = 0.16;  // half of the last label
  PanelFigure script(grid, legend);
  for (std::size_t metric = 0; metric < metrics.size(); ++metric) {
    script.panel(metric, fmt::format("{}: change against {} (%)", plain(metrics[metric].metric.title()),
                                     plain(candidates.front().gains->baseline)));
    std::string plot = fmt::format("0 with lines linewidth 0.9 linecolor rgb '{}' notitle, ", colour::ink);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (rows[metric][i].empty()) continue;
      const std::string block = fmt::format("gain_{}_{}", metric, i);
      script.data(block, rows[metric][i]);
      plot += barred_curve(block, rows[metric][i], run_style(i), {1.2, 0.5, 1.3});
    }
    plot.resize(plot.size() - 2);
    script.value_axis(across.low, across.high)
        .line("set xlabel \"{}\" offset 0,0.5", plain(candidates.front().axis))
        .y_axis(reach[metric].low, reach[metric].high, 0.06)
        .line("plot {}", plot);
  }
  return script.figure("gain-by");
}

}  // namespace gainlens::reports
