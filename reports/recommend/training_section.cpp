#include "core/counted.h"
#include "reports/recommend/compared_arms.h"
#include "reports/recommend/paper_numbers.h"
#include "reports/recommend/run_sections.h"
#include "reports/training/learning_curves_figure.h"

#include <algorithm>

namespace gainlens::reports {
namespace {

using analyses::ArmResult;

using Group = std::vector<const ComparedArms*>;

LabelledCurves baseline_curves(const ComparedArms& arms) {
  return {arms.comparison.baseline, arms.comparison.baseline_curves, arms.baseline_style};
}

LabelledCurves candidate_curves(const ComparedArms& arms) {
  return {arms.comparison.candidate, arms.comparison.candidate_curves, arms.candidate_style};
}

/// Every arm on one split, the baseline once.
std::vector<LabelledCurves> curves_of(const Group& group) {
  std::vector<LabelledCurves> curves = {baseline_curves(*group.front())};
  for (const ComparedArms* arms : group) curves.push_back(candidate_curves(*arms));
  return curves;
}

std::vector<Block> learning_curves_blocks(Comparisons comparisons) {
  std::vector<Block> all;
  for (const Group& group : by_split(comparisons)) {
    const std::vector<LabelledCurves> curves = curves_of(group);
    const analyses::ArmComparison& first = group.front()->comparison;
    const std::string name = numbered_stem("learning-curves", all.size());
    const auto trained =
        std::count_if(curves.begin(), curves.end(), [](const auto& arm) { return !arm.curves.empty(); });
    const std::string subject = group.size() == 1
                                    ? group.front()->title
                                    : fmt::format("{} on {} ({})", counted(trained, "trained arm"),
                                                  printable(first.data_set, 60), backbone_title(first.backbone));
    const Caption caption = {
        fmt::format("{}. {}", subject, learning_curves_in_words(curves)),
        "It shows whether the arms were trained to their end, and whether seeds or arms differ more.",
        "The validation items chose the epochs. The heights of the markers are no unbiased results: these are those of "
        "the test items."};
    all.emplace_back(CaptionedFigure{name, "Learning curves", caption, learning_curves_figure(curves, name)});
  }
  return all;
}

std::vector<CsvTable> learning_curves_tables(const ComparedArms& arms) {
  const std::vector<LabelledCurves> both = {baseline_curves(arms), candidate_curves(arms)};
  return {learning_curves_csv(both)};
}

std::vector<LabelledCurves> curves_of(const TrainedRun& trained) {
  std::vector<LabelledCurves> curves;
  for (const ArmResult& arm : trained.results.arms) curves.push_back({arm.name, arm.curves, curves.size()});
  return curves;
}

std::string in_words(const Maybe<analyses::Reach>& reach) {
  if (!reach) return "–";
  return reach->first == reach->second ? std::to_string(reach->first)
                                       : fmt::format("{} to {}", reach->first, reach->second);
}

/// The test metric that the curves show.
const analyses::SeedValues& test_of(const ArmResult& arm) {
  const auto place = std::find_if(ranking_metrics().begin(), ranking_metrics().end(),
                                  [](const RankingMetric& metric) { return metric.name() == analyses::curve_metric; });
  return arm.test.at(static_cast<std::size_t>(place - ranking_metrics().begin()));
}

PaperTable training_table(const TrainedRun& trained) {
  PaperTable table{"training",
                   fmt::format("How long the arms were trained, and {} at the best epoch, which the validation items "
                               "chose. Mean (standard deviation) over seeds.",
                               curve_metric_title()),
                   {{"arm", true}, {"seeds"}, {"epochs"}, {"best epoch"}, {"validation"}, {"test"}},
                   {}};
  for (const ArmResult& arm : trained.results.arms) {
    if (arm.trained)
      table.rows.push_back({arm.name, std::to_string(arm.finished.size()), in_words(arm.reach_of_epochs()),
                            in_words(arm.reach_of_best_epochs()), metric_number(arm.validation.over_seeds, true),
                            metric_number(test_of(arm).over_seeds, true)});
  }
  return table;
}

std::vector<Block> training_blocks(TrainedRuns runs) {
  const std::vector<LabelledCurves> curves = curves_of(runs.front());
  const Caption caption = {
      learning_curves_in_words(curves),
      "It shows whether the arms were trained to their end, and how much seeds differ.",
      "The validation items chose the epochs. The heights of the markers are no unbiased results: these are those of "
      "the test items."};
  return {
      CaptionedFigure{"learning-curves", "Learning curves", caption, learning_curves_figure(curves, "learning-curves")},
      training_table(runs.front())};
}

}  // namespace

const Section<ComparedArms> learning_curves_section = {.name = "learning-curves",
                                                       .title = "Learning curves",
                                                       .question = "Were the arms trained to their end?",
                                                       .files = {"learning-curves"},
                                                       .blocks = learning_curves_blocks,
                                                       .tables = learning_curves_tables};

const Section<TrainedRun> training_section = {
    .name = "learning-curves",
    .title = "Learning curves",
    .question = "Were the arms trained to their end?",
    .files = {"learning-curves", "training"},
    .blocks = training_blocks,
    .tables = [](const TrainedRun& trained) { return std::vector<CsvTable>{learning_curves_csv(curves_of(trained))}; }};

}  // namespace gainlens::reports
