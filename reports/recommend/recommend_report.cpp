#include "reports/recommend/recommend_report.h"

#include "core/counted.h"
#include "reports/page/typography.h"
#include "reports/recommend/run_sections.h"
#include "reports/recommend/sections.h"

#include <fmt/ranges.h>

#include <iterator>
#include <utility>
#include <vector>

namespace gainlens::reports {
namespace {

std::string header(const TrainedRun& trained) {
  const runfile::RecommendRun& run = trained.run();
  return fmt::format(
      "<header>\n<h1>How well does it recommend?</h1>\n<p class=\"lead\">A recommender run: {} on {}, {} ({}), {}."
      "</p>\n</header>\n",
      escape_html(printable(run.backbone(), 60)), escape_html(printable(run.data_name(), 60)),
      counted(run.arms.size(), "arm"), escape_html(fmt::format("{}", fmt::join(run.arms, ", "))),
      counted(run.seeds.size(), "seed"));
}

/// Puts the sections of `part` behind those of `report`. summary.json is the caller's affair.
void append(MadeReport& report, MadeReport part) {
  const auto move_all = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  move_all(report.sections, part.sections);
  move_all(report.csv, part.csv);
  move_all(report.stems, part.stems);
}

void append_comparisons(MadeReport& report, const TrainedRun& trained) {
  static const std::vector<analyses::PooledComparison> none;  // one data set
  std::vector<ComparedArms> arms;
  for (const analyses::ArmComparison& comparison : trained.results.comparisons)
    arms.push_back({comparison, &none, comparison.title()});
  OrderedJson summary = OrderedJson::object();
  if (!trained.results.not_compared.empty()) report.summary["not_compared"] = trained.results.not_compared;
  if (!arms.empty()) {
    MadeReport part = make_report<ComparedArms>(arm_comparison_sections(), arms);
    if (arms.size() == 1)
      summary[arms.front().title] = std::move(part.summary);
    else
      summary = std::move(part.summary["runs"]);
    append(report, std::move(part));
  }
  report.summary["comparisons"] = std::move(summary);
}

}  // namespace

std::span<const Section<TrainedRun>* const> run_sections() {
  static const Section<TrainedRun>* const sections[] = {
      &run_summary_section(), &run_facts_section(), &test_metrics_section(),
      &training_section(),    &filter_section(),    &quintiles_section(),
  };
  return sections;
}

std::span<const Section<ComparedArms>* const> arm_comparison_sections() {
  static const Section<ComparedArms>* const sections[] = {&gains_section(), &strata_section()};
  return sections;
}

std::span<const Section<TrainedRun>* const> closing_run_sections() {
  static const Section<TrainedRun>* const sections[] = {&run_reading_section(), &run_files_section()};
  return sections;
}

WrittenReport write_recommend_report(const TrainedRun& run, const std::filesystem::path& out) {
  const TrainedRuns runs(&run, 1);
  MadeReport report = make_report<TrainedRun>(run_sections(), runs);
  append_comparisons(report, run);
  append(report, make_report<TrainedRun>(closing_run_sections(), runs));
  check_sections(report);
  report.title = "gainlens report";
  report.header = header(run);
  return write_files(report, out);
}

}  // namespace gainlens::reports
