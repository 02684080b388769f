#include "reports/recommend/gain_by_report.h"

#include "core/counted.h"
#include "reports/page/page_style.h"
#include "reports/page/typography.h"
#include "reports/recommend/paper_numbers.h"
#include "reports/section.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::ConditionGain;
using analyses::MetricGain;
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

std::vector<Block> blocks(Candidates candidates) {
  return {CaptionedFigure{"gain-by", fmt::format("Change by {}", candidates.front().axis), caption_of(candidates),
                          gain_by_figure(candidates)},
          Html{fmt::format("<pre>{}</pre>\n", escape_html(print_gain_by(candidates)))}};
}

void add_json(const CandidateGains& candidate, OrderedJson& summary) {
  summary["gain_by"] = analyses::to_json(*candidate.gains);
  summary["gain_by"]["axis"] = candidate.axis;
}

std::vector<CsvTable> tables(const CandidateGains& candidate) {
  CsvTable table{
      "gain-by",
      {"candidate", "condition", "metric", "seeds", "baseline", "candidate_mean", "change", "low", "high", "p", "holm"},
      {}};
  for (const ConditionGain& point : candidate.gains->points) {
    for (std::size_t metric = 0; metric < point.comparison.metrics.size(); ++metric) {
      const MetricGain& gain = point.comparison.metrics[metric];
      table.rows.push_back({candidate.label(), point.condition, gain.metric.name(),
                            cell(point.comparison.baseline_seeds.size()), gain.seeds.baseline.mean,
                            gain.seeds.candidate.mean, cell(gain.seeds.relative)});
      append(table.rows.back(), change_ends(gain.log_ratio));
      table.rows.back().push_back(cell(point.decisions[metric].p));
      table.rows.back().push_back(cell(point.decisions[metric].holm));
    }
  }
  return {table};
}

std::vector<std::string> files() {
  return {"gain-by"};
}

const Section<CandidateGains>& gain_by_section() {
  static const Section<CandidateGains> section = {.name = "gain-by",
                                                  .title = "Change by condition",
                                                  .question = "Under which condition does an arm gain?",
                                                  .files = files,
                                                  .keys = {"gain_by"},
                                                  .blocks = blocks,
                                                  .add_json = add_json,
                                                  .tables = tables};
  return section;
}

constexpr const char* row_line = "{:>10}  {:<14} {:<9} {:>5}  {:<8} {:<8} {:>7}  {:<28} {:>7} {:>7}  {}\n";

}  // namespace

std::string print_gain_by(Candidates candidates) {
  std::string text = fmt::format("against {}, by {}\n", printable(candidates.front().gains->baseline, 60),
                                 printable(candidates.front().axis, 200));
  text += fmt::format(row_line, "condition", "arm", "metric", "seeds", "baseline", "arm's", "change", "95%", "p",
                      "Holm p", "decision");
  for (const CandidateGains& one : candidates) {
    for (const ConditionGain& point : one.gains->points) {
      for (std::size_t metric = 0; metric < point.comparison.metrics.size(); ++metric) {
        const MetricGain& gain = point.comparison.metrics[metric];
        text += fmt::format(row_line, point.condition, printable(one.label(), 60), gain.metric.name(),
                            point.comparison.baseline_seeds.size(), metric_number(gain.seeds.baseline.mean),
                            metric_number(gain.seeds.candidate.mean), change_of_log(gain.log_ratio),
                            change_interval(gain.log_ratio), p_number(point.decisions[metric].p),
                            p_number(point.decisions[metric].holm), point.decisions[metric].in_words());
      }
    }
  }
  return text;
}

WrittenReport write_gain_by_report(Candidates candidates, const std::filesystem::path& out) {
  const Section<CandidateGains>* const sections[] = {&gain_by_section()};
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
