#include "reports/recommend/learning_curves_figure.h"
#include "reports/recommend/sections.h"

namespace gainlens::reports {
namespace {

using analyses::ArmComparison;
using analyses::ArmCurve;

Caption caption_of(const std::string& title) {
  return {
      fmt::format("{}: {} on the validation items after each epoch. Thin lines are seeds, their markers the epoch "
                  "whose weights were tested. The thick line is the mean over seeds; it ends where the first seed "
                  "ends.",
                  title, analyses::curve_metric),
      "It shows whether both arms were trained to their end, and whether seeds or arms differ more.",
      "The validation items chose the epochs. The heights of the markers are no unbiased results: these are those of "
      "the test items."};
}

std::vector<Block> blocks(Comparisons comparisons) {
  std::vector<Block> all;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const ArmComparison& comparison = comparisons[i].comparison;
    const std::string name = numbered_stem("learning-curves", i);
    all.emplace_back(CaptionedFigure{name, "Learning curves", caption_of(comparisons[i].title),
                                     learning_curves_figure(comparison, name)});
  }
  return all;
}

std::vector<CsvTable> tables(const ComparedArms& arms) {
  CsvTable table{"learning-curves", {"arm", "seed", "epoch", std::string(analyses::curve_metric), "is_best"}, {}};
  const ArmComparison& c = arms.comparison;
  for (const auto& [label, curves] :
       {std::pair{&c.baseline, &c.baseline_curves}, {&c.candidate, &c.candidate_curves}}) {
    for (const ArmCurve& curve : *curves) {
      for (std::size_t epoch = 0; epoch < curve.values.size(); ++epoch) {
        const auto number = static_cast<std::int64_t>(epoch + 1);
        table.rows.push_back(
            {*label, curve.seed, number, curve.values[epoch], std::int64_t{number == curve.best_epoch ? 1 : 0}});
      }
    }
  }
  return {table};
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
