#include "reports/recommend/gain_by_report.h"

#include "core/counted.h"
#include "reports/figures/figure_parts.h"
#include "reports/page/page_style.h"
#include "reports/page/table.h"
#include "reports/page/typography.h"
#include "reports/recommend/paper_numbers.h"
#include "reports/section.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::ConditionGain;
using analyses::MetricGain;

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

using Candidates = std::span<const CandidateGains>;

std::size_t fewest_seeds(Candidates candidates) {
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const CandidateGains& one : candidates) {
    for (const ConditionGain& point : one.gains->points)
      fewest = std::min(fewest, point.comparison.baseline_seeds.size());
  }
  return fewest;
}

Caption caption_of(Candidates candidates) {
  const std::size_t seeds = fewest_seeds(candidates);
  const char* const bars = seeds >= analyses::fewest_crossed_seeds
                               ? "Bars are 95% intervals over seeds and users; users with one test item count as one."
                               : "Bars are intervals over seeds and users where there are three seeds; with two they "
                                 "are ranges without a level, with one they are over users alone.";
  return {fmt::format("The relative change of each metric against {}, by {}. {}", candidates.front().gains->baseline,
                      candidates.front().axis, bars),
          "It shows under which condition an arm gains.",
          "Conditions that were made from one data set share their users: their errors go together, and a trend over "
          "the points is not tested."};
}

Table gains_table(Candidates candidates) {
  using analyses::Show;
  const Show metric{Show::Kind::number, [](double value) { return metric_number(value); }},
      p{Show::Kind::number, [](double value) { return p_number(Measured(value)); }},
      change{Show::Kind::number, [](double share) { return change_number(share); }},
      condition{Show::Kind::number, [](double value) { return fmt::format("{}", value); }};
  Table table{"gain-by",
              fmt::format("Each arm against {}, by {}.", printable(candidates.front().gains->baseline, 60),
                          printable(candidates.front().axis, 200)),
              {{.key = "candidate", .heading = "arm", .show = analyses::verbatim},
               {.key = "condition", .heading = "condition", .show = condition},
               {.key = "metric", .heading = "metric", .show = analyses::verbatim},
               {.key = "seeds", .heading = "seeds", .show = analyses::whole},
               {.key = "baseline", .heading = "baseline", .show = metric},
               {.key = "candidate_mean", .heading = "arm's", .show = metric},
               {.key = "change", .heading = "", .show = change},  // of the means over seeds
               {.key = "log_change", .heading = "change", .show = change, .csv = ""},
               {.key = "ends", .heading = "", .show = ends_as(change), .csv = "*"},
               {.key = "interval", .heading = "95%", .show = analyses::words, .csv = ""},
               {.key = "p", .heading = "p", .show = p},
               {.key = "holm", .heading = "Holm p", .show = p},
               {.key = "decision", .heading = "decision", .show = analyses::words, .csv = ""}}};
  for (const CandidateGains& one : candidates) {
    for (const ConditionGain& point : one.gains->points) {
      for (std::size_t i = 0; i < point.comparison.metrics.size(); ++i) {
        const MetricGain& gain = point.comparison.metrics[i];
        const auto& log_ratio = gain.log_ratio;
        table.rows.push_back({one.label(), point.condition, gain.metric.name(), point.comparison.baseline_seeds.size(),
                              gain.seeds.baseline.mean, gain.seeds.candidate.mean, gain.seeds.relative,
                              log_ratio ? Measured(std::expm1(log_ratio->value)) : Measured::none(log_ratio.reason()),
                              change_ends(log_ratio), change_interval(log_ratio), point.decisions[i].p,
                              point.decisions[i].holm, point.decisions[i].in_words()});
      }
    }
  }
  return table;
}

std::vector<Block> blocks(Candidates candidates) {
  return {CaptionedFigure{"gain-by", fmt::format("Change by {}", candidates.front().axis), caption_of(candidates),
                          gain_by_figure(candidates)},
          paper_table(gains_table(candidates))};
}

void add_json(const CandidateGains& candidate, OrderedJson& summary) {
  summary["gain_by"] = analyses::to_json(*candidate.gains);
  summary["gain_by"]["axis"] = candidate.axis;
}

std::vector<CsvTable> tables(const CandidateGains& candidate) {
  return {csv_table(gains_table({&candidate, 1}))};
}

const Section<CandidateGains> gain_by_section = {.name = "gain-by",
                                                 .title = "Change by condition",
                                                 .question = "Under which condition does an arm gain?",
                                                 .files = {"gain-by"},
                                                 .keys = {"gain_by"},
                                                 .blocks = blocks,
                                                 .add_json = add_json,
                                                 .tables = tables};

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

std::string print_gain_by(Candidates candidates) {
  return text_table(gains_table(candidates));
}

WrittenReport write_gain_by_report(Candidates candidates, const std::filesystem::path& out) {
  const Section<CandidateGains>* const sections[] = {&gain_by_section};
  MadeReport report = make_report<CandidateGains>(sections, candidates);
  report.title =
      page_title(fmt::format("gains against {} by {}", candidates.front().gains->baseline, candidates.front().axis));
  report.header = fmt::format(
      "<header>\n<h1>When does an arm gain?</h1>\n<p class=\"lead\">The change of each arm against {}, by {}.</p>\n"
      "</header>\n",
      escape_html(candidates.front().gains->baseline), escape_html(candidates.front().axis));
  return write_files(report, out);
}

}  // namespace gainlens::reports
