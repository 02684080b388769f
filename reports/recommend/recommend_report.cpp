#include "reports/recommend/recommend_report.h"

#include "core/counted.h"
#include "reports/page/page_style.h"
#include "reports/page/typography.h"
#include "reports/recommend/paper_numbers.h"
#include "reports/recommend/run_sections.h"

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
      escape_html(backbone_title(run.backbone())), escape_html(printable(run.data_name(), 60)),
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

/// The arms of the run that are compared.
std::vector<ComparedArms> arms_of(const TrainedRun& trained) {
  return compared_arms(trained.results.comparisons, {}, trained.run().arms);  // one data set: nothing is pooled
}

/// Adds what the sections show and say of the comparisons.
/// @param summary  of summary.json: object by the keys of the comparisons
void append_comparisons(MadeReport& report, std::span<const Section<ComparedArms>* const> sections,
                        const std::vector<ComparedArms>& arms, OrderedJson& summary) {
  if (arms.empty()) return;
  MadeReport part = make_report<ComparedArms>(sections, arms);
  for (const ComparedArms& one : arms)
    summary[one.key].update(arms.size() == 1 ? part.summary : part.summary["runs"][one.key]);
  append(report, std::move(part));
}

}  // namespace

const std::vector<const Section<TrainedRun>*> opening_run_sections = {&run_summary_section};

const std::vector<const Section<ComparedArms>*> answer_sections = {&decisions_section};

const std::vector<const Section<TrainedRun>*> run_sections = {&run_facts_section, &test_metrics_section,
                                                              &training_section,  &filter_section,
                                                              &quintiles_section, &run_checks_section};

const std::vector<const Section<ComparedArms>*> arm_comparison_sections = {&gains_section, &strata_section};

const std::vector<const Section<TrainedRun>*> closing_run_sections = {&run_reading_section, &run_files_section};

WrittenReport write_recommend_report(const TrainedRun& run, const std::filesystem::path& out, const Writing& writing) {
  const TrainedRuns runs(&run, 1);
  const std::vector<ComparedArms> arms = arms_of(run);
  OrderedJson comparisons = OrderedJson::object();
  MadeReport report = make_report<TrainedRun>(opening_run_sections, runs);
  append_comparisons(report, answer_sections, arms, comparisons);
  MadeReport own = make_report<TrainedRun>(run_sections, runs);
  report.summary.update(own.summary);
  append(report, std::move(own));
  append_comparisons(report, arm_comparison_sections, arms, comparisons);
  if (!run.results.not_compared.empty()) report.summary["not_compared"] = run.results.not_compared;
  report.summary["comparisons"] = std::move(comparisons);
  append(report, make_report<TrainedRun>(closing_run_sections, runs));
  check_sections(report);
  report.title = page_title(backbone_title(run.run().backbone()), printable(run.run().data_name(), 60));
  report.header = header(run);
  return write_files(report, out, writing);
}

}  // namespace gainlens::reports
