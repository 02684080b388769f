#include "reports/sensitivity/sensitivity_report.h"

#include "analyses/paper_gains.h"
#include "core/check.h"
#include "core/counted.h"
#include "reports/figures/figure_parts.h"
#include "reports/page/page_style.h"
#include "reports/page/typography.h"
#include "reports/section.h"
#include "reports/sensitivity/sensitivity_words.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::KnobResult, analyses::Sensitivity, analyses::SettingResult;

KnobGroup group_of(const KnobResult& knob) {
  const analyses::PaperKnob* const known = analyses::find_paper_knob(knob.key);
  if (known == nullptr) return KnobGroup::other;
  return known->tunable ? KnobGroup::tunable : KnobGroup::flat;
}

/// A setting, or the reference, on the axes of its panel.
struct Point {
  std::string text;
  std::optional<double> place;  // the value
  double x = 0;                 // where it is drawn
  double y, low = no_value, high = no_value;
  bool differs = false, is_reference = false;
};

/// A point in the unit of the metric: the reference times the paired ratio, so that bars and band compare with one
/// line.
Point point_of(const SettingResult& setting, double reference) {
  Point point{.text = setting.text, .place = setting.place, .y = no_value, .differs = setting.differs()};
  if (setting.same_ranks) point.y = reference;
  if (setting.change) point.y = reference * std::exp(setting.change->value);
  if (const auto interval = analyses::stated_interval(setting.change)) {
    point.low = reference * std::exp(interval->low);
    point.high = reference * std::exp(interval->high);
  }
  return point;
}

std::vector<Point> points_of(const KnobResult& knob, double reference) {
  std::vector<Point> points = {
      {.text = knob.reference_text, .place = knob.reference_place, .y = reference, .is_reference = true}};
  for (const SettingResult& setting : knob.settings) points.push_back(point_of(setting, reference));
  std::ranges::stable_sort(points, {}, [](const Point& point) { return point.place.value_or(0); });
  return points;
}

/// Sets where the points are drawn: by value, on a logarithmic axis where the values span a decade or more. A 0 there
/// stands left of the smallest value; words stand side by side.
/// @returns  whether the axis is logarithmic
bool place(std::vector<Point>& points) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  bool numbers = true, negative = false;
  for (const Point& point : points) {
    numbers = numbers && point.place;
    const double value = point.place.value_or(0);
    negative = negative || value < 0;
    if (value > 0) least = std::min(least, value), most = std::max(most, value);
  }
  const bool logarithmic = numbers && !negative && most >= 10 * least;
  const double zero = least / std::max(2.0, std::pow(most / least, 0.25));
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double value = numbers ? *points[i].place : static_cast<double>(i);
    points[i].x = logarithmic && value == 0 ? zero : value;
  }
  return logarithmic;
}

/// Range and ticks of the x axis. A label that would touch another is left out; that of the reference stays.
void x_axis(PlotScript& script, const std::vector<Point>& points, bool logarithmic, double width) {
  const auto on_axis = [logarithmic](double x) { return logarithmic ? std::log10(x) : x; };
  const double first = on_axis(points.front().x), last = on_axis(points.back().x);
  const double room = first < last ? 0.08 * (last - first) : 0.5, low = first - room, high = last + room;
  const auto at = [logarithmic](double place) { return logarithmic ? std::pow(10, place) : place; };
  std::vector<std::pair<double, double>> taken;
  const auto fits = [&](const Point& point) {
    const double middle = width * (on_axis(point.x) - low) / (high - low);
    const double half = 0.5 * (character_width * static_cast<double>(point.text.size()) + label_gap);
    for (const auto& [begin, end] : taken)
      if (middle - half < end && middle + half > begin) return false;
    taken.emplace_back(middle - half, middle + half);
    return true;
  };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (points[i].is_reference) order.push_back(i);
  for (std::size_t i = 0; i < points.size(); ++i)
    if (!points[i].is_reference) order.push_back(i);
  std::vector<bool> labelled(points.size());
  for (const std::size_t i : order) labelled[i] = fits(points[i]);
  std::string ticks;
  for (std::size_t i = 0; i < points.size(); ++i)
    ticks += fmt::format("{}\"{}\" {:.9g}", ticks.empty() ? "" : ", ", labelled[i] ? plain(points[i].text) : "",
                         points[i].x);
  script.line("{}", logarithmic ? "set logscale x 10" : "unset logscale x")
      .line("set xrange [{:.9g}:{:.9g}]", at(low), at(high))
      .line("set xtics ({})", ticks);
}

void draw_panel(PlotScript& script, std::size_t index, const KnobResult& knob, std::vector<Point> points,
                double width) {
  const bool logarithmic = place(points);
  std::ranges::stable_sort(points, {}, &Point::x);
  x_axis(script, points, logarithmic, width);
  script.line("set xlabel \"{}\" offset 0,0.5", plain(knob.key));
  Rows rows, differing, reference;
  for (const Point& point : points) {
    rows.push_back({point.x, point.y, point.low, point.high});
    if (point.differs) differing.push_back({point.x, point.y});
    if (point.is_reference) reference.push_back({point.x, point.y});
  }
  const std::string block = fmt::format("knob_{}", index);
  script.data(block, rows).data(block + "_reference", reference);
  const RunStyle& style = run_style(0);
  std::string plot = barred_curve(block, rows, style, {1.2, 0.45, 1.0});
  if (!differing.empty()) {
    script.data(block + "_differs", differing);
    plot += fmt::format("${}_differs using 1:2 with points pointtype {} pointsize 0.55 linecolor rgb '{}' notitle, ",
                        block, run_style(1).marker, colour::vermillion);
  }
  plot += fmt::format("${}_reference using 1:2 with points pointtype {} pointsize 0.9 linecolor rgb '{}' notitle",
                      block, style.hollow_marker, colour::ink);
  script.line("plot {}", plot);
}

using Results = std::span<const Sensitivity>;

constexpr KnobGroup groups[] = {KnobGroup::flat, KnobGroup::tunable, KnobGroup::other};

std::string title_of(KnobGroup group) {
  switch (group) {
    case KnobGroup::flat:
      return "The knobs that the paper calls flat";
    case KnobGroup::tunable:
      return "The knobs that the paper calls worth tuning";
    case KnobGroup::other:
      return "Other knobs";
  }
  return "";
}

Caption caption_of(const Sensitivity& sensitivity) {
  return {
      fmt::format(
          "Each panel varies one setting of {} and keeps the others. Points are means of {} over {}; the circled one "
          "is the reference, whose mean is the dashed line. Bars are 95% intervals of the paired change from the "
          "reference, over seeds and users; the grey band is the margin of ±{:g}%. Squares differ after Holm's "
          "correction over all settings of all knobs. On logarithmic axes a 0 stands left of the smallest value; ticks "
          "without a number are settings whose numbers would touch.",
          sensitivity.arm, sensitivity.metric.title(), counted(sensitivity.seeds.size(), "seed"),
          100 * sensitivity.margin),
      "It shows which changes are shown, and how large the others may be.",
      "A bar that crosses the dashed line does not show that a setting has no effect: flat is what lies in the "
      "band. Settings of one knob that act together with another are not seen."};
}

PaperTable answers(const Sensitivity& sensitivity) {
  PaperTable table{"sensitivity-knobs",
                   fmt::format("What the settings of each knob do to {}, beside what the paper says (Beauty, HR@10, 10 "
                               "seeds).",
                               sensitivity.metric.title()),
                   {{"knob", true}, {"this run", true}, {"paper", true}},
                   {}};
  for (const KnobResult& knob : sensitivity.knobs) {
    const analyses::PaperKnob* const known = analyses::find_paper_knob(knob.key);
    table.rows.push_back(
        {knob_name(knob), knob.in_words(sensitivity.margin), known == nullptr ? "–" : std::string(known->says)});
  }
  return table;
}

PaperTable details(const Sensitivity& sensitivity) {
  PaperTable table{
      "sensitivity-settings",
      "Each setting against the reference. Flat within: the smallest margin within which the setting would "
      "be shown to be flat.",
      {},
      {}};
  for (const std::string& heading : setting_headings()) table.columns.push_back({heading, table.columns.empty()});
  for (const KnobResult& knob : sensitivity.knobs) {
    table.rows.push_back({knob_name(knob)});
    table.rows.push_back(reference_cells(sensitivity, knob));
    for (const SettingResult& setting : knob.settings) table.rows.push_back(setting_cells(setting));
  }
  return table;
}

std::vector<Block> blocks(Results results) {
  std::vector<Block> all;
  for (const Sensitivity& sensitivity : results) {
    all.emplace_back(answers(sensitivity));
    all.push_back(paragraph(power_in_words(sensitivity)));
    for (const KnobGroup group : groups) {
      Maybe<Figure> figure = sensitivity_figure(sensitivity, group);
      if (group == KnobGroup::other && !figure) continue;
      all.emplace_back(CaptionedFigure{figure_name(group), title_of(group), caption_of(sensitivity), figure});
    }
    all.emplace_back(details(sensitivity));
    for (const analyses::LeftOutVariant& variant : sensitivity.left_out)
      all.push_back(absence(fmt::format("{} is left out: {}.", variant.arm, variant.reason)));
  }
  return all;
}

void add_json(const Sensitivity& sensitivity, OrderedJson& summary) {
  summary["sensitivity"] = analyses::to_json(sensitivity);
}

void add_row(CsvTable& table, const KnobResult& knob, const SettingResult& setting) {
  table.rows.push_back({knob.key, setting.text, cell(setting.seeds.size()), setting.summary.mean,
                        cell(setting.summary.deviation),
                        setting.change ? analyses::relative_change(setting.change->value) : empty_cell()});
  append(table.rows.back(), analyses::relative_change(analyses::stated_interval(setting.change)));
  for (const Measured& value : {setting.p, setting.holm, setting.equivalence.p, setting.reach()})
    table.rows.back().push_back(cell(value));
}

std::vector<CsvTable> tables(const Sensitivity& sensitivity) {
  CsvTable table{"sensitivity",
                 {"knob", "setting", "seeds", "mean", "deviation", "change", "change_low", "change_high", "p", "p_holm",
                  "equivalence_p", "least_margin"},
                 {}};
  for (const KnobResult& knob : sensitivity.knobs) {
    table.rows.push_back({knob.key, knob.reference_text, cell(sensitivity.seeds.size()), sensitivity.reference.mean,
                          cell(sensitivity.reference.deviation), 0.0});
    table.rows.back().resize(table.header.size(), empty_cell());
    for (const SettingResult& setting : knob.settings) add_row(table, knob, setting);
  }
  return {table};
}

std::vector<std::string> files() {
  std::vector<std::string> names = {"sensitivity", "sensitivity-knobs", "sensitivity-settings"};
  for (const KnobGroup group : groups) names.push_back(figure_name(group));
  return names;
}

const Section<Sensitivity> sensitivity_section = {.name = "sensitivity",
                                                  .title = "Sensitivity",
                                                  .question = "Which settings matter?",
                                                  .files = files(),
                                                  .keys = {"sensitivity"},
                                                  .blocks = blocks,
                                                  .add_json = add_json,
                                                  .tables = tables};

}  // namespace

std::string figure_name(KnobGroup group) {
  switch (group) {
    case KnobGroup::flat:
      return "sensitivity-flat";
    case KnobGroup::tunable:
      return "sensitivity-tunable";
    case KnobGroup::other:
      return "sensitivity-other";
  }
  ASSERT(false, "group {}", static_cast<int>(group));
}

Maybe<Figure> sensitivity_figure(const Sensitivity& sensitivity, KnobGroup group) {
  using Missing = Maybe<Figure>;
  std::vector<const KnobResult*> knobs;
  for (const KnobResult& knob : sensitivity.knobs)
    if (group_of(knob) == group) knobs.push_back(&knob);
  if (knobs.empty()) return Missing::none("no knob of this group was varied");
  if (knobs.size() > max_panels)
    return Missing::none(fmt::format("{} knobs; {} panels fit one figure", knobs.size(), max_panels));
  const double reference = sensitivity.reference.mean;
  if (!(reference > 0)) return Missing::none("the mean of the reference is 0");

  const double band_low = reference / (1 + sensitivity.margin), band_high = reference * (1 + sensitivity.margin);
  Extent extent{band_low, band_high};
  std::vector<std::vector<Point>> points;
  for (const KnobResult* knob : knobs) {
    points.push_back(points_of(*knob, reference));
    for (const Point& point : points.back()) {
      for (const double y : {point.y, point.low, point.high}) extent.add(y);
    }
  }
  const int count = static_cast<int>(knobs.size());
  PanelGrid grid{count == 1 ? column_width : page_width, 0};
  grid.columns = count == 4 ? 2 : std::min(count, 3);
  grid.rows = (count + grid.columns - 1) / grid.columns;
  grid.left = 0.62;
  grid.right = 0.1;
  grid.across = 0.25;
  grid.bottom = 0.42;
  grid.height = grid.top + grid.bottom + 1.55 * grid.rows + grid.down * (grid.rows - 1);
  PanelFigure script(grid);
  script.y_axis(extent.low, extent.high, 0.06);
  script.line(
      "set object 1 rectangle from graph 0, first {:.9g} to graph 1, first {:.9g} fillcolor rgb '{}' fillstyle "
      "solid noborder behind",
      band_low, band_high, colour::faint);
  script.line(
      "set arrow 1 from graph 0, first {0:.9g} to graph 1, first {0:.9g} nohead linewidth 0.9 dashtype 2 "
      "linecolor rgb '{1}'",
      reference, colour::ink);
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    const analyses::PaperKnob* const known = analyses::find_paper_knob(knobs[i]->key);
    script.panel(i, known == nullptr ? plain(knobs[i]->key) : std::string(known->plot));
    const bool leftmost = i % static_cast<std::size_t>(grid.columns) == 0;
    script.line("set format y '{}'", leftmost ? "%g" : "");
    if (leftmost)
      script.line("set ylabel \"{}\" offset 1.2,0", plain(sensitivity.metric.title()));
    else
      script.line("unset ylabel");
    draw_panel(script, i, *knobs[i], std::move(points[i]), grid.panel_width());
  }
  return script.figure(figure_name(group));
}

WrittenReport write_sensitivity_report(const Sensitivity& sensitivity, const std::filesystem::path& out,
                                       const std::vector<std::string>& notes) {
  const Section<Sensitivity>* const sections[] = {&sensitivity_section};
  MadeReport report = make_report<Sensitivity>(sections, std::span(&sensitivity, 1));
  report.title = page_title("settings of " + printable(sensitivity.arm, 60), printable(sensitivity.data_set, 60));
  report.header = fmt::format(
      "<header>\n<h1>Which settings of the filter matter?</h1>\n<p class=\"lead\">One setting of {} at a time, on {}: "
      "what shows a change of {}, what is shown to be flat, and what is not decided.</p>\n{}</header>\n",
      escape_html(sensitivity.arm), escape_html(sensitivity.data_set), escape_html(sensitivity.metric.title()),
      paragraphs_of(notes));
  if (!notes.empty()) report.summary["notes"] = notes;
  return write_files(report, out);
}

}  // namespace gainlens::reports
