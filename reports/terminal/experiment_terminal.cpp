#include "reports/terminal/experiment_terminal.h"

#include "analyses/gain_decisions.h"
#include "core/counted.h"
#include "reports/words/compare_words.h"
#include "reports/words/score_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace gainlens::reports {
namespace {

using namespace compare_words;
using analyses::ExperimentComparison;
using analyses::UnitScoreGain;

/// The width of the column of names.
std::size_t width_of_names(std::span<const ExperimentComparison> comparisons) {
  std::size_t width = 8;
  for (const ExperimentComparison& comparison : comparisons)
    for (const UnitScoreGain& gain : comparison.scores) width = std::max(width, gain.score.name.size());
  return width;
}

constexpr const char* decision_line = "{:<{}} {:>10}   {:<34} {:>7} {:>7} {:>8}  {}\n";

/// The answer: one row for each comparison and score.
std::string answer(std::span<const ExperimentComparison> comparisons, std::size_t width) {
  const bool stated = std::ranges::all_of(comparisons, [](const ExperimentComparison& comparison) {
    return comparison.baseline_seeds.size() >= analyses::fewest_crossed_seeds;
  });
  std::string text =
      fmt::format(decision_line, "score", width + 2, "change", stated ? "95% of the change" : "interval of the change",
                  "p", "Holm p", "naive p", "decision");
  for (const analyses::GainDecision& row : analyses::decide(comparisons)) {
    const ExperimentComparison& comparison = comparisons[row.comparison];
    const UnitScoreGain& gain = comparison.scores[row.metric];
    if (row.metric == 0)
      text += fmt::format("{}, {}, {}\n", comparison.title(), counted(comparison.baseline_seeds.size(), "seed"),
                          counted(comparison.units, comparison.unit));
    text += fmt::format(decision_line, "  " + gain.score.name, width + 2, score_change(gain.seeds.difference),
                        ends_of(gain.difference, score_interval) + kind_of(gain.difference), p_number(row.p),
                        p_number(row.holm), p_number(gain.seeds.naive_p), row.in_words());
    const std::string note = comparison.selection_note();
    if (row.metric + 1 == comparison.scores.size() && !note.empty()) text += "  " + note + "\n";
  }
  return text;
}

constexpr const char* score_line = "{:<{}} {:<7} {:<22} {:<22} {:>8}\n";

std::string one(const ExperimentComparison& comparison, std::size_t width) {
  std::string text = fmt::format("{}\nseeds {}\n", comparison.title(),
                                 paired_seeds(comparison.baseline_seeds, comparison.candidate_seeds));
  text += fmt::format(score_line, "score", width, "better", "baseline (sd)", "candidate (sd)", "signs p");
  Reasons reasons;
  for (const UnitScoreGain& gain : comparison.scores) {
    const analyses::SeedComparison& seeds = gain.seeds;
    text += fmt::format(score_line, gain.score.name, width, gain.score.higher_is_better ? "higher" : "lower",
                        score_number(seeds.baseline), score_number(seeds.candidate), p_number(seeds.signs.p));
    for (const std::string& reason :
         {seeds.naive_p.reason(), seeds.signs.p.reason(), stated_p(gain.difference).reason()})
      reasons.add(reason);
  }
  for (const UnitScoreGain& gain : comparison.scores) {
    if (gain.equivalence) text += fmt::format("  {} {}\n", gain.score.name, equivalence_in_words(*gain.equivalence));
  }
  text += reasons.text() + notes_on_seeds(comparison.baseline_seeds.size(), comparison.unit);
  const std::string far = far_seeds(comparison.scores, comparison.candidate_seeds,
                                    [](const UnitScoreGain& gain) { return gain.score.name; });
  return text + (far.empty() ? "" : far + "\n");
}

}  // namespace

std::string print_comparisons(std::span<const ExperimentComparison> comparisons) {
  const std::size_t width = width_of_names(comparisons);
  std::string text = answer(comparisons, width);
  for (const ExperimentComparison& comparison : comparisons) text += "\n" + one(comparison, width);
  return text +
         fmt::format(
             "\np, which decides at 5%, and its interval count other seeds and other {0}s. Holm p: corrected for "
             "all rows.\nnaive p: paired t over the seeds, which takes the {0}s as fixed. Changes are differences "
             "of means.\nnot shown: this does not say that there is no difference.\n",
             comparisons.front().unit);
}

}  // namespace gainlens::reports
