#include "reports/sensitivity/sensitivity_words.h"

#include "analyses/paper_gains.h"
#include "core/counted.h"
#include "core/number_ranges.h"
#include "core/terminal_text.h"
#include "reports/words/numbers.h"

#include <fmt/format.h>

#include <vector>

namespace gainlens::reports {
namespace {

using analyses::KnobResult;
using analyses::Sensitivity;

std::string line_of(const std::vector<std::string>& cells) {
  constexpr std::size_t widths[] = {10, 6, 8, 8, 23, 9, 9};
  std::string line = "  ";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += i + 1 == cells.size() ? cells[i] : fmt::format("{:<{}} ", cells[i], widths[i] - 1);
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
}

std::string print(const Sensitivity& sensitivity, const KnobResult& knob) {
  std::string text = fmt::format("\n{}: {}\n", knob_name(knob), knob.in_words(sensitivity.margin));
  if (const analyses::PaperKnob* const known = analyses::find_paper_knob(knob.key))
    text += fmt::format("  paper: {}\n", known->says);
  text += line_of(setting_headings()) + line_of(reference_cells(sensitivity, knob));
  for (const analyses::SettingResult& setting : knob.settings) text += line_of(setting_cells(setting));
  return text;
}

std::string deviation(const analyses::ArmSummary& summary) {
  return summary.deviation ? fmt::format("{:.4f}", *summary.deviation) : "–";
}

std::string change(const analyses::SettingResult& setting) {
  if (setting.same_ranks) return "same ranks";
  if (!setting.change) return "–";
  const std::string value = fmt::format("{:+.1f}%", 100 * analyses::relative_change(setting.change->value));
  const auto interval = analyses::relative_change(analyses::stated_interval(setting.change));
  return interval ? fmt::format("{} [{:+.1f}, {:+.1f}]", value, 100 * interval->low, 100 * interval->high) : value;
}

}  // namespace

std::string print_sensitivity(const Sensitivity& sensitivity) {
  std::string text =
      fmt::format("arm {} on {} ({}), {}, {} {}, {}; margin ±{:g}%\n", terminal_line(sensitivity.arm),
                  terminal_line(sensitivity.data_set), terminal_line(sensitivity.backbone), sensitivity.metric.title(),
                  sensitivity.seeds.size() == 1 ? "seed" : "seeds", number_ranges(sensitivity.seeds, " to "),
                  counted(sensitivity.users, "user"), 100 * sensitivity.margin);
  for (const KnobResult& knob : sensitivity.knobs) text += print(sensitivity, knob);
  if (!sensitivity.left_out.empty()) text += "\nleft out:\n";
  for (const analyses::LeftOutVariant& variant : sensitivity.left_out)
    text += fmt::format("  {}: {}\n", terminal_line(variant.arm), terminal_line(variant.reason));
  text += "\n" + power_in_words(sensitivity) + "\n";
  text +=
      "change, 95%, p: against the reference with the same seeds, over other seeds and other users, as compare does\n"
      "Holm p: corrected for all settings of all knobs; a knob differs if one is at most 5%\n"
      "flat: every setting is shown to lie within the margin (two one-sided tests). A change that is not significant\n"
      "shows no flatness. flat within: the smallest margin within which the setting would be shown to be flat\n"
      "paper: bft.tex, appendix ablations (Beauty, HR@10, 10 seeds). docs/analyses/sensitivity.md\n";
  return text;
}

std::string knob_name(const analyses::KnobResult& knob) {
  const analyses::PaperKnob* const known = analyses::find_paper_knob(knob.key);
  const std::string key = terminal_line(knob.key);
  return known == nullptr ? key : fmt::format("{} ({})", known->symbol, key);
}

const std::vector<std::string>& setting_headings() {
  static const std::vector<std::string> headings = {"setting",      "seeds", "mean",   "sd",
                                                    "change [95%]", "p",     "Holm p", "flat within"};
  return headings;
}

std::vector<std::string> setting_cells(const analyses::SettingResult& setting) {
  const Measured reach = setting.reach();
  return {setting.text,
          std::to_string(setting.seeds.size()),
          fmt::format("{:.4f}", setting.summary.mean),
          deviation(setting.summary),
          change(setting),
          shown_p(setting.p),
          shown_p(setting.holm),
          reach ? fmt::format("±{:.1f}%", 100 * *reach) : "–"};
}

std::vector<std::string> reference_cells(const analyses::Sensitivity& sensitivity, const analyses::KnobResult& knob) {
  return {knob.reference_text,
          std::to_string(sensitivity.seeds.size()),
          fmt::format("{:.4f}", sensitivity.reference.mean),
          deviation(sensitivity.reference),
          "reference",
          "",
          "",
          ""};
}

std::string power_in_words(const analyses::Sensitivity& sensitivity) {
  const Measured width = sensitivity.median_half_width();
  const std::string seeds = counted(sensitivity.seeds.size(), "seed");
  if (!width) return fmt::format("With {}, no change has a 95% interval: nothing can be decided.", seeds);
  return fmt::format(
      "With {} and {}, the 95% interval of a change reaches ±{:.1f}% around it (median). Smaller changes are seldom "
      "shown, and so is flatness within a smaller margin.",
      seeds, counted(sensitivity.users, "user"), 100 * *width);
}

}  // namespace gainlens::reports
