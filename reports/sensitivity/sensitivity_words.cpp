#include "reports/sensitivity/sensitivity_words.h"

#include "analyses/paper_knobs.h"
#include "core/counted.h"
#include "core/terminal_text.h"
#include "reports/words/numbers.h"

#include <fmt/format.h>

namespace gainlens::reports {
namespace {

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
