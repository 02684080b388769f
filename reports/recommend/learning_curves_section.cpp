#include "reports/recommend/learning_curves_figure.h"
#include "reports/recommend/sections.h"

#include <array>

namespace gainlens::reports {
namespace {

std::array<LabelledCurves, 2> curves_of(const ComparedArms& arms) {
  const analyses::ArmComparison& comparison = arms.comparison;
  return {{{comparison.baseline, comparison.baseline_curves}, {comparison.candidate, comparison.candidate_curves}}};
}

std::vector<Block> blocks(Comparisons comparisons) {
  std::vector<Block> all;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const auto curves = curves_of(comparisons[i]);
    const std::string name = numbered_stem("learning-curves", i);
    const Caption caption = {
        fmt::format("{}. {}", comparisons[i].title, learning_curves_in_words(curves)),
        "It shows whether both arms were trained to their end, and whether seeds or arms differ more.",
        "The validation items chose the epochs. The heights of the markers are no unbiased results: these are those of "
        "the test items."};
    all.emplace_back(CaptionedFigure{name, "Learning curves", caption, learning_curves_figure(curves, name)});
  }
  return all;
}

std::vector<CsvTable> tables(const ComparedArms& arms) {
  return {learning_curves_csv(curves_of(arms))};
}

std::vector<std::string> files() {
  return {"learning-curves"};
}

}  // namespace

const Section<ComparedArms>& learning_curves_section() {
  static const Section<ComparedArms> section = {.name = "learning-curves",
                                                .title = "Learning curves",
                                                .question = "Were both arms trained to their end?",
                                                .files = files,
                                                .keys = {},
                                                .blocks = blocks,
                                                .tables = tables};
  return section;
}

}  // namespace gainlens::reports
