#include "reports/terminal/gate_arms_terminal.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::ArmInContext;
using analyses::GateArmEffect;
using analyses::GateArmEffects;

constexpr std::size_t name_width = 11, shown_unsolved = 5;

std::string name_of(const GateArmEffect& effect) {
  return printable(effect.arm, name_width);
}

/// "+0.0123 [+0.0100, +0.0146]"
std::string with_interval(double value, const analyses::Maybe<analyses::Interval>& interval) {
  return interval ? fmt::format("{:+.4f} [{:+.4f}, {:+.4f}]", value, interval->low, interval->high)
                  : fmt::format("{:+.4f} [–]", value);
}

std::string calibration_lines(const analyses::CalibrationSummary& summary) {
  std::string text = fmt::format("calibration  {}; mean gate {:.4f}, mean K {:.4f}\n", counted(summary.heads, "head"),
                                 summary.gate_mean, summary.raw_mean);
  if (summary.lambda) {
    text += fmt::format("lambda       {:.4g} to {:.4g}, median {:.4g}; means of K' meet those of gates to {:.1e}\n",
                        summary.lambda->low, summary.lambda->high, *summary.lambda_median,
                        summary.largest_miss.value_or(0));
  }
  if (summary.unsolved.empty()) return text;
  text += fmt::format("kept         {} whose gate no lambda meets:", counted(summary.unsolved.size(), "head"));
  for (std::size_t i = 0; i < std::min(summary.unsolved.size(), shown_unsolved); ++i)
    text += fmt::format(" {}.{}", summary.unsolved[i].layer, summary.unsolved[i].head);
  return text + (summary.unsolved.size() > shown_unsolved ? " ..\n" : "\n");
}

std::string header(std::string_view first, const GateArmEffects& effects, std::size_t width) {
  std::string text = fmt::format("{:<{}}", first, name_width);
  for (const ArmInContext& one : effects.arms.front().contexts)
    text += fmt::format("  {:>{}}", format_count(one.tokens), width);
  return text;
}

std::string loss_table(const GateArmEffects& effects) {
  std::string text = "Nats per token of native, and the change of it by each arm [95% over documents]\n" +
                     header("arm", effects, 26) + "\n";
  for (const GateArmEffect& effect : effects.arms) {
    text += fmt::format("{:<{}}", name_of(effect), name_width);
    for (const ArmInContext& one : effect.contexts) {
      text += fmt::format("  {:>26}", one.to_native ? with_interval(one.to_native->mean, one.to_native->interval)
                                                    : fmt::format("{:.4f}", one.nll));
    }
    text += "\n";
  }
  return text;
}

/// How the change at the trained length stands to the margin.
std::string at_trained_words(const analyses::Equivalence& test) {
  if (!test.interval) return "not known";
  const double centre = (test.interval->low + test.interval->high) / 2;
  switch (test.flatness) {
    case analyses::Flatness::equivalent:
      return fmt::format("equivalent within ±{}", test.margin);
    case analyses::Flatness::changes:
      return centre < 0 ? "better" : "worse";
    case analyses::Flatness::not_shown:
    case analyses::Flatness::unknown:
      break;
  }
  return fmt::format("not shown within ±{}", test.margin);
}

/// At the trained length and over contexts.
std::string arm_rulings(const GateArmEffects& effects) {
  std::string text =
      fmt::format("\n{:<{}}  {:<23}  {:>26}\n", "arm", name_width,
                  fmt::format("at {} tokens", format_count(effects.trained_length)), "slope on ln T [95%]");
  for (const GateArmEffect& effect : effects.arms) {
    if (!effect.at_trained) continue;
    const analyses::Maybe<analyses::ContextSlope>& slope = *effect.slope;
    text += fmt::format("{:<{}}  {:<23}  {:>26}\n", name_of(effect), name_width, at_trained_words(*effect.at_trained),
                        slope ? with_interval(slope->value, slope->interval) : "–");
  }
  return text;
}

std::string means_table(const GateArmEffects& effects) {
  std::string text = "\nMean gate / BOS mass / n_eff; the last two over the queries that predict the targets\n" +
                     header("arm", effects, 21) + "\n";
  for (const GateArmEffect& effect : effects.arms) {
    text += fmt::format("{:<{}}", name_of(effect), name_width);
    for (const ArmInContext& one : effect.contexts)
      text += fmt::format("  {:>21}", fmt::format("{:.3f} / {:.3f} / {:.1f}", one.gate_mean, one.bos_mass, one.n_eff));
    text += "\n";
  }
  return text;
}

/// What so many documents can show.
std::string power_lines(const GateArmEffects& effects) {
  const auto judged = std::ranges::find(effects.arms, effects.judged, &GateArmEffect::arm);
  if (judged == effects.arms.end()) return {};
  const analyses::Measured& first = judged->contexts.front().to_native->detectable;
  if (effects.documents < 2) return fmt::format("\npower     not known: {}\n", first.reason());
  std::string text =
      fmt::format("\npower     {} show with {:.0f}% probability, at 5%, a difference of (skewness of the documents)\n",
                  counted(effects.documents, "document"), 100 * runfile::declared.power);
  const auto line = [&](const std::string& against, std::int64_t tokens, const analyses::ArmDifference& difference) {
    const std::string skewness = difference.skewness ? fmt::format(" ({:+.2f})", *difference.skewness) : "";
    text += difference.detectable ? fmt::format("          {:.4f}  {} - {} at {} tokens{}\n", *difference.detectable,
                                                effects.judged, against, format_count(tokens), skewness)
                                  : fmt::format("          –       {} - {}: {}\n", effects.judged, against,
                                                difference.detectable.reason());
  };
  for (const ArmInContext& one : judged->contexts) line("native", one.tokens, *one.to_native);
  for (const analyses::GateArmComparison& one : effects.comparisons)
    if (one.against != "native") line(one.against, judged->contexts.back().tokens, one.difference);
  return text;
}

}  // namespace

std::string print_gate_arms(const GateArmEffects& effects, const std::string& of) {
  std::string text = fmt::format("measured     {}\n", of) + calibration_lines(effects.calibration) + "\n" +
                     loss_table(effects) + arm_rulings(effects) + means_table(effects) + power_lines(effects);
  text += effects.judged == "gain" ? "\nprediction 3 (gain in the place of the gate): "
                                   : "\nprediction 3, read without gates (modulated): ";
  text += fmt::format("{}\n", in_words(effects.ruling));
  for (const std::string& reason : effects.reasons) text += fmt::format("  - {}\n", printable(reason, 300));
  return text;
}

}  // namespace gainlens::reports
