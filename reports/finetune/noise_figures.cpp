#include "reports/figures/figure_parts.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"
#include "reports/finetune/finetune_report.h"
#include "reports/words/score_words.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace gainlens::reports {
namespace {

using analyses::NoiseGain;
using analyses::NoiseLevels;

/// A curve of one panel: level, value, ends of its bar.
struct Curve {
  std::size_t style;
  Rows rows;
};
using Panel = std::pair<std::string, std::vector<Curve>>;

/// A curve of runfile::filter_curves() by layer.
struct FilterPanel {
  const char* curve;
  const char* title;
  bool is_share = false;  ///< drawn from 0 to 1
};
constexpr FilterPanel filter_panels[] = {{"gain", "Kalman gain"},
                                         {"precision", "precision before the layer"},
                                         {"share_at_most", "share of λ_{obs} at its bound", true}};

/// Where arms stand on the axis of levels: side by side at each level, as wide apart as the axis allows.
class LevelAxis {
 public:
  explicit LevelAxis(const NoiseLevels& levels) : levels_(levels), one_(levels.levels.size() == 1) {}

  double place(std::size_t level, std::size_t arm) const {
    const double middle = 0.5 * static_cast<double>(levels_.arms.size() - 1);
    return levels_.levels[level] + gap() * (static_cast<double>(arm) - middle);
  }
  /// One level has half a level to both sides, and one tick.
  void draw(PlotScript& script) const {
    const double low = levels_.levels.front(), high = levels_.levels.back();
    if (one_) {
      script.line("set xrange [{:.9g}:{:.9g}]", low - 0.5, high + 0.5).line("set xtics ({:.9g})", low);
    } else {
      script.value_axis(low, high);
    }
    script.line("set xlabel 'wrong answer words (%)' offset 0,0.5");
  }

 private:
  double gap() const {
    return one_ ? 0.6 / static_cast<double>(levels_.arms.size())
                : 0.012 * (levels_.levels.back() - levels_.levels.front());
  }

  const NoiseLevels& levels_;
  bool one_;
};

/// @param around_zero  whether 0 has a line of its own
Figure drawn(const std::string& name, const LevelAxis& axis, const std::vector<Panel>& panels,
             const std::vector<LegendEntry>& legend, bool around_zero) {
  PanelGrid grid{page_width, 2.2};
  grid.columns = static_cast<int>(panels.size());
  grid.left = 0.55;
  grid.across = 0.62;
  PanelFigure script(grid, legend);
  for (std::size_t panel = 0; panel < panels.size(); ++panel) {
    script.panel(panel, panels[panel].first);
    Extent reach;
    if (around_zero) reach.add(0);
    std::string plot =
        around_zero ? fmt::format("0 with lines linewidth 0.9 linecolor rgb '{}' notitle, ", colour::ink) : "";
    for (const Curve& curve : panels[panel].second) {
      reach.add(curve.rows, {1, 2, 3});
      if (curve.rows.empty()) continue;
      const std::string block = fmt::format("curve_{}_{}", panel, curve.style);
      script.data(block, curve.rows);
      plot += barred_curve(block, curve.rows, run_style(curve.style), {1.2, 0.5, 1.3});
    }
    plot.resize(plot.size() - 2);
    axis.draw(script);
    script.y_axis(reach.low, reach.high, 0.06).line("plot {}", plot);
  }
  return script.figure(name);
}

/// The scores that every cell has, without those of parts of the units.
std::vector<std::string> scores_of(const NoiseLevels& levels) {
  std::vector<std::string> names;
  for (const auto& [name, values] : levels.cells.front().means)
    if (!name.ends_with(not_selected)) names.push_back(name);
  return names;
}

}  // namespace

bool has_scores_without_selection(const NoiseLevels& levels) {
  const std::vector<std::string> scores = scores_of(levels);
  return levels.selection_units > 0 && std::ranges::all_of(levels.cells, [&](const analyses::NoiseCell& cell) {
           return std::ranges::all_of(scores, [&](const std::string& score) {
             const auto found = cell.means.find(score + not_selected);
             return found != cell.means.end() && found->second.size() == cell.seeds.size();
           });
         });
}

Maybe<Figure> noise_figure(const NoiseLevels& levels) {
  if (levels.arms.size() > max_runs) return too_many(levels.arms.size(), "arms");
  const LevelAxis axis(levels);
  const std::string part = has_scores_without_selection(levels) ? not_selected : "";
  std::vector<Panel> panels;
  for (const std::string& score : scores_of(levels)) {
    Panel panel{score_title(score), {}};
    for (std::size_t arm = 0; arm < levels.arms.size(); ++arm) {
      Curve curve{arm, {}};
      for (std::size_t level = 0; level < levels.levels.size(); ++level) {
        const analyses::NoiseCell* cell = levels.cell(arm, level);
        if (cell == nullptr) continue;
        const analyses::ArmSummary summary = analyses::arm_summary(cell->means.at(score + part));
        const double error =
            summary.deviation ? *summary.deviation / std::sqrt(static_cast<double>(cell->seeds.size())) : no_value;
        curve.rows.push_back({axis.place(level, arm), summary.mean, summary.mean - error, summary.mean + error});
      }
      panel.second.push_back(std::move(curve));
    }
    panels.push_back(std::move(panel));
  }
  return drawn("noise-levels", axis, panels, name_runs(levels.arms), /*around_zero=*/false);
}

Maybe<Figure> noise_gains_figure(const NoiseLevels& levels) {
  if (levels.arms.size() > max_runs) return too_many(levels.arms.size(), "arms");
  const std::vector<const NoiseGain*> rows = levels.rows();
  if (rows.empty()) return Maybe<Figure>::none("no seed has finished two arms");
  const LevelAxis axis(levels);
  std::vector<Panel> panels;
  for (std::size_t score = 0; score < rows.front()->comparison->scores.size(); ++score) {
    Panel panel{fmt::format("{}: change against {}", score_title(rows.front()->comparison->scores[score].score.name),
                            plain(levels.arms.front())),
                {}};
    for (std::size_t arm = 1; arm < levels.arms.size(); ++arm) {
      Curve curve{arm, {}};
      for (const NoiseGain* row : rows) {
        if (row->arm != arm || !row->range.only) continue;
        const analyses::UnitScoreGain& gain = row->comparison->scores[score];
        curve.rows.push_back(barred_point(axis.place(*row->range.only, arm), gain.seeds.difference,
                                          analyses::shown_ends(gain.difference)));
      }
      panel.second.push_back(std::move(curve));
    }
    panels.push_back(std::move(panel));
  }
  std::vector<LegendEntry> legend;
  for (std::size_t arm = 1; arm < levels.arms.size(); ++arm) legend.push_back(name_run(levels.arms[arm], arm));
  return drawn("noise-gains", axis, panels, legend, /*around_zero=*/true);
}

Maybe<Figure> filter_by_layer_figure(const FilterOfLevel& filter) {
  const std::size_t epochs = filter.layers.front().mean.at("gain").size();
  std::vector<std::size_t> drawn_epochs;  // those in which the filter was in force
  for (std::size_t epoch = 0; epoch < epochs; ++epoch)
    if (std::isfinite(filter.layers.front().mean.at("gain")[epoch])) drawn_epochs.push_back(epoch);
  if (drawn_epochs.empty())
    return Maybe<Figure>::none("the filter was not in force after any epoch that all seeds have");
  while (drawn_epochs.size() > max_runs) drawn_epochs.erase(drawn_epochs.begin() + 1);  // the first and the last ones
  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; i < drawn_epochs.size(); ++i)
    legend.push_back(name_run(fmt::format("epoch {}", drawn_epochs[i] + 1), i));
  std::vector<FilterPanel> panels;
  for (const FilterPanel& panel : filter_panels) {
    const bool known = std::ranges::any_of(filter.layers, [&](const analyses::FilterLayer& layer) {
      return std::ranges::any_of(drawn_epochs,
                                 [&](std::size_t epoch) { return std::isfinite(layer.mean.at(panel.curve)[epoch]); });
    });
    if (known) panels.push_back(panel);  // a control may have a gain without precisions
  }
  PanelGrid grid{page_width, 2.2};
  grid.columns = static_cast<int>(panels.size());
  grid.left = 0.55;
  grid.across = 0.62;
  PanelFigure script(grid, legend);
  script.value_axis(0, static_cast<double>(std::max<std::size_t>(filter.layers.size() - 1, 1)))
      .line("set xlabel 'layer' offset 0,0.5");
  std::size_t place = 0;
  for (const FilterPanel& panel : panels) {
    script.panel(place, panel.title);
    Extent reach;
    if (panel.is_share) reach = {0, 1};
    std::string plot;
    for (std::size_t i = 0; i < drawn_epochs.size(); ++i) {
      Rows rows;
      for (std::size_t layer = 0; layer < filter.layers.size(); ++layer) {
        const double value = filter.layers[layer].mean.at(panel.curve)[drawn_epochs[i]];
        rows.push_back({static_cast<double>(layer), value, no_value, no_value});
        reach.add(value);
      }
      const std::string block = fmt::format("{}_{}", panel.curve, i);
      script.data(block, rows);
      plot += barred_curve(block, rows, run_style(i), {1.2, 0.5, 1.3});
    }
    plot.resize(plot.size() - 2);
    script.y_axis(reach.low, reach.high, 0.06).line("plot {}", plot);
    ++place;
  }
  return script.figure("filter-by-layer");
}

}  // namespace gainlens::reports
