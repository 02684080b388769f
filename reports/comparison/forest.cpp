#include "reports/comparison/forest.h"

#include "reports/figures/figure_parts.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace gainlens::reports {
namespace {

int dash_of(ForestLine line) {
  return line == ForestLine::stated ? 1 : line == ForestLine::range ? 2 : 3;
}

/// The first characters of a name, at most 24 of UTF-8.
std::string shortened(const std::string& name) {
  constexpr std::size_t max_characters = 24;
  const auto begins = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; };
  if (static_cast<std::size_t>(std::ranges::count_if(name, begins)) <= max_characters) return name;
  std::size_t characters = 0, end = 0;
  for (; end < name.size(); ++end)
    if (begins(name[end]) && ++characters == max_characters) break;
  return name.substr(0, end) + "…";
}

struct Axis {
  double low = 0, high = 0;
};

double reach_of(const ForestRow& row) {
  return std::max({std::abs(row.ends.low), std::abs(row.ends.high), std::abs(row.value)});
}

std::size_t lines_of(const Forest& forest) {
  std::size_t count = 0;
  for (const auto& group : forest.rows) count += group.size() + 1;
  return count;
}

template <typename Test>
bool any_row(const Forest& forest, const Test& test) {
  return std::any_of(forest.rows.begin(), forest.rows.end(), [&](const auto& group) {
    return std::any_of(group.begin(), group.end(), [&](const auto& row) { return row && test(*row); });
  });
}

bool any(const Forest& forest, ForestLine line) {
  return any_row(forest, [&](const ForestRow& row) { return row.line == line; });
}

bool any_naive(const Forest& forest) {
  return any_row(forest, [](const ForestRow& row) { return bool(row.naive); });
}

Axis axis_of(const Forest& forest) {
  const auto& rows = forest.rows;
  const std::size_t comparisons = forest.names.size();
  std::vector<double> reach(comparisons, 0);
  for (const auto& group : rows) {
    for (std::size_t i = 0; i < comparisons; ++i) reach[i] = std::max(reach[i], group[i] ? reach_of(*group[i]) : 0);
  }
  double smallest = std::numeric_limits<double>::infinity();
  for (const double one : reach) smallest = one > 0 ? std::min(smallest, one) : smallest;
  Axis axis;
  for (const auto& group : rows) {
    for (std::size_t i = 0; i < comparisons; ++i) {
      if (!group[i] || reach[i] > forest.max_reaches * smallest) continue;
      axis.low = std::min({axis.low, group[i]->ends.low, group[i]->value});
      axis.high = std::max({axis.high, group[i]->ends.high, group[i]->value});
      if (!group[i]->naive) continue;
      axis.low = std::min(axis.low, group[i]->naive->low);
      axis.high = std::max(axis.high, group[i]->naive->high);
    }
  }
  if (axis.low == axis.high) axis = {-1, 1};
  return axis;
}

/// The blocks of one drawing.
struct Drawn {
  Rows lines;   // low, high, y; as far as they lie on the axis
  Rows ends;    // x, y: solid, because a dash may stop before the end. A line that goes on beyond the axis has no end
                // there
  Rows points;  // value, y
};

/// Everything that is plotted, in the order of the drawing.
class Drawing {
 public:
  Drawing(PlotScript& script, const Axis& edges, const Forest& forest)
      : script_(script), edges_(edges), forest_(forest) {}

  void add(const ForestRow& row, double y) {
    if (row.naive) line(naive_, *row.naive, y - 0.3);
    Drawn& drawn = drawn_[{row.style, row.line}];
    line(drawn, row.ends, y);
    if (row.value >= edges_.low && row.value <= edges_.high) {
      drawn.points.push_back({row.value, y});
    } else {
      const bool left = row.value < edges_.low;
      const std::string number = plain(forest_.number(row.value));
      script_.line("set label \"{}\" at graph {}, first {:.3f} {} offset {},0.1 textcolor rgb '{}'",
                   left ? "← " + number : number + " →", left ? 0 : 1, y, left ? "left" : "right", left ? 0.3 : -0.3,
                   run_style(row.style).colour);
    }
  }

  void plot() {
    std::string commands;
    const auto vectors = [&](const std::string& block, const Rows& rows, const char* columns, double width, int dash,
                             std::string_view colour) {
      if (rows.empty()) return;
      script_.data(block, rows);
      commands += fmt::format("${} using {} with vectors nohead linewidth {} dashtype {} linecolor rgb '{}' notitle, ",
                              block, columns, width, dash, colour);
    };
    constexpr const char* along = "1:3:($2-$1):(0)";
    vectors("naive", naive_.lines, along, 1.1, 1, colour::grey);
    for (const auto& [key, drawn] : drawn_) {
      const auto& [style, kind] = key;
      const std::string name = fmt::format("{}_{}", style, dash_of(kind));
      vectors("lines_" + name, drawn.lines, along, 2, dash_of(kind), run_style(style).colour);
      vectors("ends_" + name, drawn.ends, "1:($2-0.16):(0):(0.32)", 1.2, 1, run_style(style).colour);
    }
    for (const auto& [key, drawn] : drawn_) {
      if (drawn.points.empty()) continue;
      const auto& [style, kind] = key;
      const std::string block = fmt::format("points_{}_{}", style, dash_of(kind));
      script_.data(block, drawn.points);
      const RunStyle& shape = run_style(style);
      commands += fmt::format("${} using 1:2 with points pointtype {} pointsize 0.6 linecolor rgb '{}' notitle, ",
                              block, kind == ForestLine::stated ? shape.marker : shape.hollow_marker, shape.colour);
    }
    commands.resize(commands.size() - 2);
    script_.line("plot {}", commands);
  }

 private:
  void line(Drawn& drawn, const Interval& ends, double y) const {
    const double low = std::max(ends.low, edges_.low), high = std::min(ends.high, edges_.high);
    if (low < high) drawn.lines.push_back({low, high, y});
    for (const double end : {ends.low, ends.high}) {
      if (end >= edges_.low && end <= edges_.high) drawn.ends.push_back({end, y});
    }
  }

  PlotScript& script_;
  Axis edges_;
  const Forest& forest_;
  Drawn naive_;
  std::map<std::tuple<std::size_t, ForestLine>, Drawn> drawn_;
};

std::vector<LegendEntry> legend_of(const Forest& forest) {
  std::vector<LegendEntry> legend;
  if (any(forest, ForestLine::stated))
    legend.push_back({fmt::format("95%, seeds and {}s", forest.unit), colour::ink, 7, 1});
  if (any(forest, ForestLine::range)) legend.push_back({"range, no level", colour::ink, 6, 2});
  if (any(forest, ForestLine::units_alone))
    legend.push_back({fmt::format("95%, {}s alone", forest.unit), colour::ink, 6, 3});
  if (any_naive(forest)) legend.push_back({"naive 95%, seeds alone", colour::grey, 0, 1});
  return legend;
}

/// Inches that the names of the rows need, with their indentation.
double name_width(const Forest& forest) {
  std::size_t longest = 0;
  for (const std::string& name : forest.names) longest = std::max(longest, name.size());
  return character_width * static_cast<double>(longest) + 0.2;
}

void draw_names(PlotScript& script, const Forest& forest) {
  std::string ticks;
  double y = 0;
  for (std::size_t metric = 0; metric < forest.groups.size(); ++metric) {
    script.line("set label \"{{/:Bold {}}}\" at graph 0, first {} right offset {:.2f},0", plain(forest.groups[metric]),
                y, -0.5);
    y -= 1;
    for (std::size_t i = 0; i < forest.names.size(); ++i) {
      ticks += fmt::format("{}\"{}\" {}", ticks.empty() ? "" : ", ", plain(forest.names[i]), y);
      if (!forest.rows[metric][i])
        script.line("set label \"no interval\" at graph 0.03, first {} left textcolor rgb '{}'", y, colour::grey);
      y -= 1;
    }
  }
  script.line("set ytics ({}) scale 0", ticks).line("set yrange [{}:0.6]", y + 0.4);
}

}  // namespace

Maybe<ForestRow> forest_row(std::size_t style, const Maybe<analyses::CrossedEstimate>& estimate, Maybe<Interval> naive,
                            const std::function<double(double)>& on_axis) {
  if (!estimate) return Maybe<ForestRow>::none(estimate.reason());
  const auto row = [&](const Interval& ends, ForestLine line) {
    return ForestRow{style, on_axis(estimate->value), {on_axis(ends.low), on_axis(ends.high)}, line, naive};
  };
  if (estimate->interval) return row(*estimate->interval, ForestLine::stated);
  if (estimate->range) return row(*estimate->range, ForestLine::range);
  if (estimate->over_units) return row(*estimate->over_units, ForestLine::units_alone);
  return Maybe<ForestRow>::none(analyses::shown_ends(estimate).reason());
}

std::vector<std::string> forest_names(const std::vector<std::pair<std::string, std::string>>& comparisons,
                                      std::size_t splits) {
  std::set<std::string> candidates;
  for (const auto& [candidate, data_set] : comparisons) candidates.insert(candidate);
  std::vector<std::string> names;
  for (const auto& [candidate, data_set] : comparisons) {
    const std::string name = splits == 1              ? candidate
                             : candidates.size() == 1 ? data_set
                                                      : fmt::format("{}, {}", candidate, data_set);
    names.push_back(shortened(name));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = names[i];
    if (std::ranges::count(names, name) == 1) continue;
    int place = 0;  // of those with this name, in the order of the tables
    for (std::string& other : names)
      if (other == name) other += fmt::format(" #{}", ++place);
  }
  return names;
}

Maybe<Figure> forest_figure(const Forest& forest, const std::string& name) {
  constexpr std::size_t max_lines = 60;
  std::size_t styles = 0;
  for (const auto& group : forest.rows) {
    for (const auto& row : group) styles = std::max(styles, row ? row->style + 1 : 0);
  }
  if (styles > max_runs)
    return Maybe<Figure>::none(fmt::format("{} arms; {} can be told apart in one report", styles, max_runs));
  const std::size_t lines = lines_of(forest);
  if (lines > max_lines)
    return Maybe<Figure>::none(fmt::format("{} rows; {} can be read in one figure", lines, max_lines));
  if (!any_row(forest, [](const ForestRow&) { return true; }))
    return Maybe<Figure>::none(forest.rows.front().front().reason());

  const std::vector<LegendEntry> legend = legend_of(forest);
  PanelGrid grid{column_width, 0.16 * static_cast<double>(lines) + 0.5};
  grid.left = std::max(name_width(forest), 0.6);
  grid.top = 0.06;
  grid.bottom += 0.04;
  PanelFigure script(grid, legend);
  script.line("set border 1")
      .line("unset grid")
      .line("set grid xtics linecolor rgb '{}' linetype 1 linewidth 0.5", colour::faint);
  const Axis axis = axis_of(forest);
  script.value_axis(axis.low, axis.high);
  const double margin = 0.06 * (axis.high - axis.low);
  const Axis edges{axis.low - margin, axis.high + margin};
  script.line("set xlabel \"{}\" offset 0,0.5", plain(forest.axis));
  script.line("set arrow 1 from 0, graph 0 to 0, graph 1 nohead linewidth 0.9 linecolor rgb '{}'", colour::ink);
  draw_names(script, forest);
  script.draw_legend();
  Drawing drawing(script, edges, forest);
  double y = 0;
  for (const auto& group : forest.rows) {
    y -= 1;
    for (const auto& row : group) {
      if (row) drawing.add(*row, y);
      y -= 1;
    }
  }
  drawing.plot();
  return script.figure(name);
}

std::string forest_lines_in_words(const Forest& forest) {
  std::string text;
  if (any(forest, ForestLine::stated))
    text +=
        fmt::format("Thick lines with filled markers are 95% intervals over seeds and {}s: they decide. ", forest.unit);
  if (any(forest, ForestLine::range))
    text += "Dashed lines with hollow markers are ranges without a level: of two seeds, or of too few units. ";
  if (any(forest, ForestLine::units_alone))
    text +=
        fmt::format("Dotted lines with hollow markers are 95% intervals over {}s alone, of one seed. ", forest.unit);
  if (any_naive(forest))
    text += fmt::format("Thin grey lines are naive 95% intervals over seeds alone, which take the {}s as fixed. ",
                        forest.unit);
  const Axis axis = axis_of(forest);
  if (any_row(forest, [&](const ForestRow& row) { return row.value < axis.low || row.value > axis.high; }))
    text += "A number with an arrow is a change beyond the axis. ";
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace gainlens::reports
