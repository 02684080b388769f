#include "reports/recommend/forest_figure.h"

#include "reports/figures/figure_parts.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"
#include "reports/recommend/paper_numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::CrossedEstimate;
using analyses::Interval;
using analyses::Maybe;
using analyses::MetricGain;

/// What the interval of a row is.
enum class Kind { stated, range, users_alone };

int dash_of(Kind kind) {
  return kind == Kind::stated ? 1 : kind == Kind::range ? 2 : 3;
}

/// One row; numbers in percent.
struct Row {
  std::size_t style;
  double value;
  Interval ends;
  Kind kind;
  Maybe<Interval> naive;
};

double percent(double log_ratio) {
  return 100 * std::expm1(log_ratio);
}

Interval percent(const Interval& log_ratio) {
  return {percent(log_ratio.low), percent(log_ratio.high)};
}

/// The change of one metric. Missing with the reason of the estimate.
Maybe<Row> row_of(const ComparedArms& arms, const MetricGain& gain) {
  const Maybe<CrossedEstimate>& estimate = gain.log_ratio;
  if (!estimate) return Maybe<Row>::none(estimate.reason());
  auto naive = naive_relative_interval(gain.seeds);
  if (naive) naive = Interval{100 * naive->low, 100 * naive->high};
  const auto row = [&](const Interval& ends, Kind kind) {
    return Row{arms.candidate_style, percent(estimate->value), percent(ends), kind, naive};
  };
  if (estimate->interval) return row(*estimate->interval, Kind::stated);
  if (estimate->range) return row(*estimate->range, Kind::range);
  if (estimate->over_units) return row(*estimate->over_units, Kind::users_alone);
  return Maybe<Row>::none(estimate->interval.reason());
}

/// What tells the comparisons apart: the candidate, the data set, or both.
std::string row_name(Comparisons comparisons, const ComparedArms& arms) {
  std::set<std::string> candidates, data_sets;
  for (const ComparedArms& other : comparisons) {
    candidates.insert(other.comparison.candidate);
    data_sets.insert(other.comparison.split);
  }
  const std::string data = printable(arms.comparison.data_set, 60);
  std::string name = data_sets.size() == 1    ? arms.comparison.candidate
                     : candidates.size() == 1 ? data
                                              : arms.comparison.candidate + ", " + data;
  constexpr std::size_t most_characters = 24;
  return name.size() > most_characters ? name.substr(0, most_characters - 1) + "…" : name;
}

struct Axis {
  double low = 0, high = 0;
};

double reach_of(const Row& row) {
  return std::max({std::abs(row.ends.low), std::abs(row.ends.high), std::abs(row.value)});
}

/// The rows of the metrics, and which comparisons set the axis.
struct Forest {
  std::vector<std::string> metrics;           ///< titles
  std::vector<std::string> names;             ///< [comparison]
  std::vector<std::vector<Maybe<Row>>> rows;  ///< [metric][comparison]
  Axis axis;

  std::size_t lines() const {
    std::size_t count = 0;
    for (const auto& group : rows) count += group.size() + 1;
    return count;
  }
  bool any(Kind kind) const {
    return std::any_of(rows.begin(), rows.end(), [&](const auto& group) {
      return std::any_of(group.begin(), group.end(), [&](const auto& row) { return row && row->kind == kind; });
    });
  }
  bool any_naive() const {
    return std::any_of(rows.begin(), rows.end(), [&](const auto& group) {
      return std::any_of(group.begin(), group.end(), [&](const auto& row) { return row && row->naive; });
    });
  }
};

/// The axis holds 0 and the intervals of the comparisons that reach at most so many times as far as the smallest one.
constexpr double most_reaches = 6;

Axis axis_of(const std::vector<std::vector<Maybe<Row>>>& rows, std::size_t comparisons) {
  std::vector<double> reach(comparisons, 0);
  for (const auto& group : rows) {
    for (std::size_t i = 0; i < comparisons; ++i) reach[i] = std::max(reach[i], group[i] ? reach_of(*group[i]) : 0);
  }
  double smallest = std::numeric_limits<double>::infinity();
  for (const double one : reach) smallest = one > 0 ? std::min(smallest, one) : smallest;
  Axis axis;
  for (const auto& group : rows) {
    for (std::size_t i = 0; i < comparisons; ++i) {
      if (!group[i] || reach[i] > most_reaches * smallest) continue;
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

Forest forest_of(Comparisons comparisons) {
  Forest forest;
  const std::size_t metrics = comparisons.front().comparison.metrics.size();
  for (std::size_t metric = 0; metric < metrics; ++metric) {
    forest.metrics.push_back(comparisons.front().comparison.metrics[metric].metric.title());
    auto& group = forest.rows.emplace_back();
    for (const ComparedArms& arms : comparisons) group.push_back(row_of(arms, arms.comparison.metrics[metric]));
  }
  for (const ComparedArms& arms : comparisons) forest.names.push_back(row_name(comparisons, arms));
  forest.axis = axis_of(forest.rows, comparisons.size());
  return forest;
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
  Drawing(PlotScript& script, const Axis& edges) : script_(script), edges_(edges) {}

  void add(const Row& row, double y) {
    if (row.naive) line(naive_, *row.naive, y - 0.3);
    Drawn& drawn = drawn_[{row.style, row.kind}];
    line(drawn, row.ends, y);
    if (row.value >= edges_.low && row.value <= edges_.high) {
      drawn.points.push_back({row.value, y});
    } else {
      const bool left = row.value < edges_.low;
      const std::string number = change_number(row.value / 100);
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
                              block, kind == Kind::stated ? shape.marker : shape.hollow_marker, shape.colour);
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
  Drawn naive_;
  std::map<std::tuple<std::size_t, Kind>, Drawn> drawn_;
};

std::vector<LegendEntry> legend_of(const Forest& forest) {
  std::vector<LegendEntry> legend;
  if (forest.any(Kind::stated)) legend.push_back({"95%, seeds and users", colour::ink, 7, 1});
  if (forest.any(Kind::range)) legend.push_back({"range of 2 seeds, no level", colour::ink, 6, 2});
  if (forest.any(Kind::users_alone)) legend.push_back({"95%, users alone", colour::ink, 6, 3});
  if (forest.any_naive()) legend.push_back({"naive 95%, seeds alone", colour::grey, 0, 1});
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
  for (std::size_t metric = 0; metric < forest.metrics.size(); ++metric) {
    script.line("set label \"{{/:Bold {}}}\" at graph 0, first {} right offset {:.2f},0", plain(forest.metrics[metric]),
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

Maybe<Figure> forest_figure(Comparisons comparisons, const std::string& name) {
  constexpr std::size_t most_lines = 60;
  std::size_t styles = 0;
  for (const ComparedArms& arms : comparisons) styles = std::max(styles, arms.candidate_style + 1);
  if (styles > most_runs)
    return Maybe<Figure>::none(fmt::format("{} arms; {} can be told apart in one report", styles, most_runs));
  const Forest forest = forest_of(comparisons);
  if (forest.lines() > most_lines)
    return Maybe<Figure>::none(fmt::format("{} rows; {} can be read in one figure", forest.lines(), most_lines));
  if (!forest.any(Kind::stated) && !forest.any(Kind::range) && !forest.any(Kind::users_alone))
    return Maybe<Figure>::none(forest.rows.front().front().reason());

  const std::vector<LegendEntry> legend = legend_of(forest);
  PanelGrid grid{column_width, 0.16 * static_cast<double>(forest.lines()) + 0.5 + legend_height(legend, column_width)};
  grid.left = std::max(name_width(forest), 0.6);
  grid.top = 0.06;
  grid.bottom += legend_height(legend, column_width) + 0.04;
  PlotScript script;
  start_panels(script, grid);
  script.line("set border 1")
      .line("unset grid")
      .line("set grid xtics linecolor rgb '{}' linetype 1 linewidth 0.5", colour::faint);
  script.value_axis(forest.axis.low, forest.axis.high);
  const double margin = 0.06 * (forest.axis.high - forest.axis.low);
  const Axis edges{forest.axis.low - margin, forest.axis.high + margin};
  script.line("set xlabel \"change against {} (%)\" offset 0,0.5", plain(baseline_of(comparisons)));
  script.line("set arrow 1 from 0, graph 0 to 0, graph 1 nohead linewidth 0.9 linecolor rgb '{}'", colour::ink);
  draw_names(script, forest);
  draw_legend(script, legend, grid.width, grid.height);
  Drawing drawing(script, edges);
  double y = 0;
  for (const auto& group : forest.rows) {
    y -= 1;
    for (const auto& row : group) {
      if (row) drawing.add(*row, y);
      y -= 1;
    }
  }
  drawing.plot();
  script.line("unset multiplot");
  return Figure{name, grid.width, grid.height, script.text()};
}

std::string forest_in_words(Comparisons comparisons) {
  const Forest forest = forest_of(comparisons);
  std::string text = fmt::format("The relative change of each metric against {}. ", baseline_of(comparisons));
  if (forest.any(Kind::stated))
    text += "Thick lines with filled markers are 95% intervals over seeds and users: they decide. ";
  if (forest.any(Kind::range))
    text += "Dashed lines with hollow markers are ranges of two seeds, which have no level. ";
  if (forest.any(Kind::users_alone))
    text += "Dotted lines with hollow markers are 95% intervals over users alone, of one seed. ";
  if (forest.any_naive())
    text += "Thin grey lines are naive 95% intervals over seeds alone, which take the users as fixed. ";
  bool is_off = false;
  for (const auto& group : forest.rows) {
    for (const auto& row : group)
      is_off = is_off || (row && (row->value < forest.axis.low || row->value > forest.axis.high));
  }
  if (is_off) text += "A number with an arrow is a change beyond the axis. ";
  text.pop_back();
  return text;
}

}  // namespace gainlens::reports
