#include "reports/attention/attention_report.h"
#include "reports/figures/figure_parts.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"
#include "reports/page/typography.h"
#include "reports/terminal/attention_terminal.h"

#include <algorithm>
#include <cmath>

namespace gainlens::reports {
namespace {

using analyses::AttentionReading, analyses::GroupedUsers, analyses::Head, analyses::HeadNumber, analyses::SeedEstimate,
    analyses::UserGrouping;

constexpr std::size_t max_columns = 4;

/// What one panel shows: a number of a head.
struct Panel {
  const AttentionNumber* number;
  std::int64_t layer, head;
};

const HeadNumber* number_of(const AttentionReading& reading, const Panel& panel) {
  for (const Head& head : reading.heads) {
    if (head.layer != panel.layer || head.head != panel.head) continue;
    const Maybe<HeadNumber>& found = head.number(panel.number->name);
    return found ? &*found : nullptr;
  }
  return nullptr;
}

bool is_by_length(UserGrouping grouping) {
  return grouping == UserGrouping::history_length;
}

/// place of the group, mean, ends of its interval
Rows rows_of(const HeadNumber& number, const GroupedUsers& users, UserGrouping grouping, std::size_t arm,
             std::size_t arms) {
  Rows rows;
  const std::vector<SeedEstimate>& means = number.by[static_cast<std::size_t>(grouping)];
  for (std::size_t i = 0; i < means.size(); ++i) {
    const double middle = static_cast<double>(arm) - 0.5 * static_cast<double>(arms - 1);
    const double at = is_by_length(grouping) ? users.mean_length[i] * std::pow(1.02, middle)
                                             : static_cast<double>(i + 1) + 0.1 * middle;
    rows.push_back(barred_point(at, value_or_nan(means[i].value), means[i].interval));
  }
  return rows;
}

/// Numbers as rows, heads as columns; if the heads of all layers are too many, each layer has rows of its own.
struct Layout {
  std::vector<Panel> panels;  // row by row
  std::size_t columns = 0;
};

Layout layout_of(SweptArms arms, const std::vector<std::string_view>& numbers) {
  std::int64_t layers = 0, heads = 0;
  for (const SweptArm& arm : arms) {
    for (const Head& head : arm.reading->heads) {
      layers = std::max(layers, head.layer + 1);
      heads = std::max(heads, head.head + 1);
    }
  }
  Layout layout;
  const bool one_row = static_cast<std::size_t>(layers * heads) <= max_columns;
  layout.columns = static_cast<std::size_t>(one_row ? layers * heads : heads);
  for (const std::string_view name : numbers) {
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      for (std::int64_t head = 0; head < heads; ++head) layout.panels.push_back({&attention_number(name), layer, head});
    }
    const bool known = std::ranges::any_of(layout.panels, [&](const Panel& panel) {
      return panel.number->name == name &&
             std::ranges::any_of(arms, [&](const SweptArm& arm) { return number_of(*arm.reading, panel) != nullptr; });
    });
    if (!known) std::erase_if(layout.panels, [&](const Panel& panel) { return panel.number->name == name; });
  }
  return layout;
}

/// Ends of the axis of a number over all heads and arms, so that panels of a row can be compared.
Extent extent_of(SweptArms arms, const Layout& layout, const AttentionNumber& number, UserGrouping grouping) {
  Extent extent;
  for (const Panel& panel : layout.panels) {
    if (panel.number != &number) continue;
    for (const SweptArm& arm : arms) {
      const HeadNumber* const found = number_of(*arm.reading, panel);
      if (found == nullptr) continue;
      for (const SeedEstimate& mean : found->by[static_cast<std::size_t>(grouping)]) {
        extent.add(value_or_nan(mean.value));
        if (mean.interval) extent.add(mean.interval->low);
        if (mean.interval) extent.add(mean.interval->high);
      }
    }
  }
  return extent;
}

/// Panels are narrow: "last item" for "mass of the last item".
std::string short_label(const AttentionNumber& number) {
  constexpr std::string_view mass = "mass of ", article = "the ";
  std::string_view label = number.label;
  if (!label.starts_with(mass)) return to_plot(label);
  label.remove_prefix(mass.size());
  if (label.starts_with(article)) label.remove_prefix(article.size());
  return fmt::format("mass, {}", label);
}

void x_axis(PlotScript& script, const GroupedUsers& users, UserGrouping grouping) {
  if (is_by_length(grouping)) {
    const double low = users.mean_length.front(), high = users.mean_length.back();
    script.line("set logscale x 2").line("set xrange [{:.6g}:{:.6g}]", low * 0.85, high * 1.18);
    std::string ticks;
    double before = 0;
    for (const double tick : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 50, 64, 100, 128, 200, 256, 500, 1000, 2000, 5000}) {
      // Labels that would touch their neighbour are left out.
      if (tick < low * 0.85 || tick > high * 1.18 ||
          std::log2(tick / std::max(before, 1e-9)) < std::log2(high / low) / 4)
        continue;
      ticks += fmt::format("{}'{}' {}", ticks.empty() ? "" : ", ", tick, tick);
      before = tick;
    }
    script.line("set xtics ({})", ticks);
    return;
  }
  const std::size_t groups = users.strata.users.size();
  script.line("set xrange [0.5:{}]", static_cast<double>(groups) + 0.5).line("set xtics 1,1,{}", groups);
}

/// Below the last row alone.
const char* axis_title(UserGrouping grouping) {
  switch (grouping) {
    case UserGrouping::history_length:
      return "known items";
    case UserGrouping::user_activity:
      return "quintile of activity";
    case UserGrouping::last_item:
      return "quintile of the last item";
    case UserGrouping::target_item:
      break;
  }
  return "quintile of the test item";
}

}  // namespace

Maybe<Figure> attention_figure(SweptArms arms, const std::string& name, UserGrouping grouping,
                               const std::vector<std::string_view>& numbers) {
  using Missing = Maybe<Figure>;
  if (arms.size() > max_runs) return too_many(arms.size(), "arms");
  const GroupedUsers& users = arms.front().reading->groupings[static_cast<std::size_t>(grouping)];
  if (users.strata.users.size() < 2) return Missing::none("all users are in one group");
  const Layout layout = layout_of(arms, numbers);
  if (layout.panels.empty()) return Missing::none("no arm has such a number");
  if (layout.panels.size() > max_panels || layout.columns > max_columns)
    return Missing::none(fmt::format("{} panels in {} columns; {} in {} fit one figure, and the tables have all heads",
                                     layout.panels.size(), layout.columns, max_panels, max_columns));
  std::vector<std::string> labels;
  for (const SweptArm& arm : arms) labels.push_back(arm.label());
  const std::vector<LegendEntry> legend = arms.size() > 1 ? name_runs(labels) : std::vector<LegendEntry>();
  const std::size_t rows = layout.panels.size() / layout.columns;
  PanelGrid grid{page_width, 0.36 + 1.24 * static_cast<double>(rows)};
  grid.rows = static_cast<int>(rows);
  grid.columns = static_cast<int>(layout.columns);
  grid.left = 0.5;
  grid.right = 0.1;
  grid.across = 0.48;
  grid.down = 0.42;
  grid.bottom = 0.4;
  PanelFigure script(grid, legend);
  x_axis(script, users, grouping);
  for (std::size_t i = 0; i < layout.panels.size(); ++i) {
    const Panel& panel = layout.panels[i];
    if (i + layout.columns == layout.panels.size()) script.line("set xlabel '{}' offset 0,0.6", axis_title(grouping));
    script.panel(i, fmt::format("{}.{}: {}", panel.layer, panel.head, short_label(*panel.number)));
    std::string plot;
    for (std::size_t arm = 0; arm < arms.size(); ++arm) {
      const HeadNumber* const found = number_of(*arms[arm].reading, panel);
      if (found == nullptr) continue;
      const Rows values = rows_of(*found, users, grouping, arm, arms.size());
      const std::string block = fmt::format("panel_{}_{}", i, arm);
      script.data(block, values);
      plot += barred_curve(block, values, run_style(arm), {1.0, 0.4, 1.1});
    }
    const Extent extent = extent_of(arms, layout, *panel.number, grouping);
    script.y_axis(std::isfinite(extent.low) ? extent.low : 0, std::isfinite(extent.high) ? extent.high : 1, 0.06);
    if (plot.empty()) plot = "NaN notitle, ";
    plot.resize(plot.size() - 2);
    script.line("plot {}", plot);
  }
  return script.figure(name);
}

}  // namespace gainlens::reports
