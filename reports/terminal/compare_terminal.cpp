#include "reports/terminal/compare_terminal.h"

#include "analyses/gain_decisions.h"
#include "core/counted.h"
#include "reports/recommend/stratum_words.h"
#include "reports/words/compare_words.h"
#include "reports/words/score_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::ArmComparison, analyses::CrossedEstimate, analyses::ExperimentComparison, analyses::MetricGain,
    analyses::StratifiedGains, analyses::UnitScoreGain;
using namespace compare_words;

/// The width of the column of names.
std::size_t width_of_names(std::span<const ExperimentComparison> comparisons) {
  std::size_t width = 8;
  for (const ExperimentComparison& comparison : comparisons)
    for (const UnitScoreGain& gain : comparison.scores) width = std::max(width, gain.score.name.size());
  return width;
}

constexpr const char* score_decision_line = "{:<{}} {:>10}   {:<34} {:>7} {:>7} {:>8}  {}\n";

/// The answer: one row for each comparison and score.
std::string answer(std::span<const ExperimentComparison> comparisons, std::size_t width) {
  const bool stated = std::ranges::all_of(comparisons, [](const ExperimentComparison& comparison) {
    return comparison.baseline_seeds.size() >= analyses::fewest_crossed_seeds;
  });
  std::string text =
      fmt::format(score_decision_line, "score", width + 2, "change",
                  stated ? "95% of the change" : "interval of the change", "p", "Holm p", "naive p", "decision");
  for (const analyses::GainDecision& row : analyses::decide(comparisons)) {
    const ExperimentComparison& comparison = comparisons[row.comparison];
    const UnitScoreGain& gain = comparison.scores[row.metric];
    if (row.metric == 0)
      text += fmt::format("{}, {}, {}\n", comparison.title(), counted(comparison.baseline_seeds.size(), "seed"),
                          counted(comparison.units, comparison.unit));
    text += fmt::format(score_decision_line, "  " + gain.score.name, width + 2, score_change(gain.seeds.difference),
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

std::string number(const Measured& value) {
  return value ? fmt::format("{:.4f}", *value) : "-";
}

std::string percent(const Measured& share) {
  return share ? fmt::format("{:+.1f}%", 100 * *share) : "-";
}

/// "-1.2% to +3.4%", of a log ratio.
std::string percent_interval(const Interval& log_ratio) {
  return fmt::format("{:+.1f}% to {:+.1f}%", 100 * std::expm1(log_ratio.low), 100 * std::expm1(log_ratio.high));
}

std::string percent_interval(const Maybe<CrossedEstimate>& log_ratio) {
  return ends_of(log_ratio, [](const Interval& interval) { return percent_interval(interval); });
}

std::string arm(double mean, const Measured& deviation) {
  return fmt::format("{:.4f} ({})", mean, number(deviation));
}

std::string arm(const analyses::ArmSummary& summary, const std::vector<analyses::ArmCurve>& curves) {
  return analyses::varies(summary, !curves.empty()) ? arm(summary.mean, summary.deviation)
                                                    : fmt::format("{:.4f} (-)", summary.mean);
}

constexpr const char* decision_line = "{:<10} {:>8}   {:<30} {:>7} {:>7} {:>8}  {}\n";

/// The answer: one row for each comparison and metric.
std::string answer(std::span<const ArmComparison> comparisons) {
  const std::vector<analyses::GainDecision> decisions = analyses::decide(comparisons);
  const bool stated = std::all_of(comparisons.begin(), comparisons.end(), [](const ArmComparison& comparison) {
    return comparison.baseline_seeds.size() >= analyses::fewest_crossed_seeds;
  });
  std::string text =
      fmt::format(decision_line, "metric", "change", stated ? "95% of the change" : "interval of the change", "p",
                  "Holm p", "naive p", "decision");
  for (const analyses::GainDecision& row : decisions) {
    const ArmComparison& comparison = comparisons[row.comparison];
    const MetricGain& gain = comparison.metrics[row.metric];
    if (row.metric == 0)
      text += fmt::format("{}, {}\n", comparison.title(), counted(comparison.baseline_seeds.size(), "seed"));
    text += fmt::format(decision_line, "  " + gain.metric.name(), percent(gain.seeds.relative),
                        percent_interval(gain.log_ratio) + kind_of(gain.log_ratio), p_number(row.p), p_number(row.holm),
                        p_number(gain.seeds.naive_p), row.in_words());
  }
  return text;
}

constexpr const char* metric_line = "{:<8} {:<17} {:<17} {:>8}   {:>20} {:>7} {:>8} {:>8}\n";

std::string metric_rows(const ArmComparison& comparison, Reasons& reasons) {
  std::string text;
  for (const MetricGain& gain : comparison.metrics) {
    const analyses::SeedComparison& seeds = gain.seeds;
    text += fmt::format(metric_line, gain.metric.name(), arm(seeds.baseline, comparison.baseline_curves),
                        arm(seeds.candidate, comparison.candidate_curves), percent(seeds.relative),
                        percent_interval(gain.log_ratio), p_number(stated_p(gain.log_ratio)), p_number(seeds.naive_p),
                        p_number(seeds.signs.p));
    for (const std::string& reason :
         {seeds.relative.reason(), seeds.naive_p.reason(), seeds.signs.p.reason(), stated_p(gain.log_ratio).reason()})
      reasons.add(reason);
    const auto* paper = analyses::paper_gain(comparison, gain.metric);
    if (paper != nullptr)
      text += fmt::format(metric_line, "  paper", arm(paper->baseline, paper->baseline_deviation),
                          arm(paper->candidate, paper->candidate_deviation), percent(paper->relative), "-", "-",
                          paper->p, "-");
  }
  return text;
}

/// One line for each stratum: who is in it, and the relative gain of each metric.
std::string strata_rows(const ArmComparison& comparison, const StratifiedGains& gains) {
  std::string text =
      fmt::format("\n{:<26} {:>7} {:>12} {:>11}", stratum_heading(gains.kind), "users", "target count", "known items");
  for (const MetricGain& gain : comparison.metrics) text += fmt::format(" {:>9}", gain.metric.name());
  text += '\n';
  if (!gains.gains) return text + fmt::format("-: {}\n", gains.gains.reason());
  for (std::size_t i = 0; i < gains.composition.size(); ++i) {
    const StratumComposition& stratum = gains.composition[i];
    text += fmt::format("{:<26} {:>7} {:>12.1f} {:>11.1f}", stratum_label(gains, i), stratum.users,
                        stratum.mean_target_count, stratum.mean_history_length);
    for (const analyses::StratumInteraction& metric : *gains.gains)
      text += fmt::format(" {:>9}", percent(metric.strata[i].relative));
    text += '\n';
  }
  for (std::size_t i = 0; i < gains.gains->size(); ++i) {
    const Maybe<CrossedEstimate>& contrast = (*gains.gains)[i].log_ratio;
    text += fmt::format("  first against last, {}: ", comparison.metrics[i].metric.name());
    text += contrast ? fmt::format("{} ({}{}), p {}\n", percent(std::expm1(contrast->value)),
                                   stated_interval(contrast) ? "" : interval_heading(contrast->seeds, "user") + ": ",
                                   percent_interval(contrast), p_number(stated_p(contrast)))
                     : fmt::format("-: {}\n", contrast.reason());
  }
  return text;
}

std::string one(const ArmComparison& comparison) {
  const std::string seeds = paired_seeds(comparison.baseline_seeds, comparison.candidate_seeds);
  std::string text =
      fmt::format("{}, {}, {}, {}\nseeds {}\n", comparison.title(), counted(comparison.baseline_seeds.size(), "seed"),
                  counted(comparison.users, "user"), counted(comparison.items, "item"), seeds);
  text += fmt::format(metric_line, "metric", "baseline (sd)", "candidate (sd)", "change",
                      interval_heading(comparison.baseline_seeds.size(), "user"), "p", "naive p", "signs p");
  Reasons reasons;
  text += metric_rows(comparison, reasons);  // in a statement of its own: it fills `reasons`
  text += reasons.text() + notes_on_seeds(comparison.baseline_seeds.size(), "user");
  const std::string far = far_seeds(comparison.metrics, comparison.candidate_seeds,
                                    [](const MetricGain& gain) { return gain.metric.name(); });
  if (!far.empty()) text += far + "\n";
  text += strata_rows(comparison, comparison.by_item) + strata_rows(comparison, comparison.by_user);
  if (std::isfinite(comparison.length_frequency_correlation))
    text += fmt::format("correlation of known items and target count over users: {:+.3f}\n",
                        comparison.length_frequency_correlation);
  return text;
}

std::string pooled_rows(const analyses::PooledComparison& pooled) {
  const std::vector<std::string>& names = pooled.metrics.front().names;
  std::string text = fmt::format("{} against {} ({}) over {}: {}\n", pooled.candidate_arm, pooled.baseline_arm,
                                 printable(pooled.backbone, 60), counted(names.size(), "data set"),
                                 printable(fmt::format("{}", fmt::join(names, ", "))));
  text += fmt::format("{:<8} {:>14} {:>16} {:>14} {:>22} {:>8}\n", "metric", "Fisher naive p", "Stouffer p (all)",
                      "sign flips p", "95% of the mean change", "p");
  Reasons reasons;
  for (std::size_t i = 0; i < pooled.metrics.size(); ++i) {
    const analyses::PooledDataSets& metric = pooled.metrics[i];
    const auto& mean = metric.relative_gain;
    text += fmt::format("{:<8} {:>14} {:>16} {:>14} {:>22} {:>8}\n", pooled.names[i].name(),
                        metric.naive_fisher ? fmt::format("{:.2g}", metric.naive_fisher->p) : "-",
                        metric.crossed_stouffer ? fmt::format("{:.2g}", metric.crossed_stouffer->p) : "-",
                        p_number(metric.flips.p), mean ? percent_interval(mean->interval) : "-",
                        mean ? p_number(mean->p) : "-");
    for (const std::string& reason :
         {metric.naive_fisher.reason(), metric.crossed_stouffer.reason(), metric.flips.p.reason(), mean.reason()})
      reasons.add(reason);
  }
  const std::string note = analyses::few_seeds_note(pooled.metrics.front().fewest_seeds);
  return text + reasons.text() + (note.empty() ? "" : "p: " + note + "\n");
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

std::string print_comparisons(std::span<const ArmComparison> comparisons,
                              std::span<const analyses::PooledComparison> pooled) {
  std::string text = answer(comparisons);
  for (const ArmComparison& comparison : comparisons) text += "\n" + one(comparison);
  for (const analyses::PooledComparison& entry : pooled) text += "\n" + pooled_rows(entry);
  return text +
         "\np, which decides at 5%, and its interval count other seeds and other users; users with one target item "
         "count "
         "as one.\nHolm p: corrected for all rows. naive p: paired t over the seeds, which takes the users as fixed. "
         "Changes are relative.\nnot shown: this does not say that there is no difference.\n";
}

}  // namespace gainlens::reports
