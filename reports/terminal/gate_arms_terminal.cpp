#include "reports/terminal/gate_arms_terminal.h"

#include "core/counted.h"
#include "core/error.h"
#include "reports/page/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace gainlens::reports {
namespace {

constexpr std::size_t shown_unsolved = 5, label_width = 13;

}  // namespace

std::vector<Fact> gate_arms_facts(const analyses::GateArmEffects& effects, const std::string& of) {
  const analyses::CalibrationSummary& summary = effects.calibration;
  std::vector<Fact> facts = {
      {"measured", of},
      {"calibration", fmt::format("{}; mean gate {:.4f}, mean K {:.4f}", counted(summary.heads, "head"),
                                  summary.gate_mean, summary.raw_mean)}};
  if (summary.lambda) {
    facts.push_back({"lambda", fmt::format("{:.4g} to {:.4g}, median {:.4g}; means of K' meet those of gates to {:.1e}",
                                           summary.lambda->low, summary.lambda->high, *summary.lambda_median,
                                           summary.largest_miss.value_or(0))});
  }
  if (!summary.unsolved.empty()) {
    std::string heads;
    for (std::size_t i = 0; i < std::min(summary.unsolved.size(), shown_unsolved); ++i)
      heads += fmt::format(" {}.{}", summary.unsolved[i].layer, summary.unsolved[i].head);
    facts.push_back({"kept", fmt::format("{} whose gate no lambda meets:{}{}", counted(summary.unsolved.size(), "head"),
                                         heads, summary.unsolved.size() > shown_unsolved ? " .." : "")});
  }
  return facts;
}

std::string gate_arms_ruling(const analyses::GateArmEffects& effects) {
  return fmt::format("prediction 3{}: {}",
                     effects.judged == "gain" ? " (gain in the place of the gate)" : ", read without gates (modulated)",
                     in_words(effects.ruling));
}

std::string print_gate_arms(const analyses::GateArmEffects& effects, const std::string& of) {
  std::string text = fact_lines(gate_arms_facts(effects, of), label_width);
  for (const Table& table : {contexts_of(effects), rulings_of(effects), comparisons_of(effects)})
    if (!table.rows.empty()) text += "\n" + text_table(table);
  text += "\n" + gate_arms_ruling(effects) + "\n";
  for (const std::string& reason : effects.reasons) text += fmt::format("  - {}\n", printable(reason, 300));
  return text;
}

}  // namespace gainlens::reports
