#include "reports/terminal/attributions_terminal.h"

#include "core/counted.h"
#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>

namespace gainlens::reports {

std::string print_attributions(const analyses::Attributions& attributions, const std::string& number) {
  std::string text = fmt::format(
      "estimated {} by one backward pass of {}\n", counted(attributions.arms.size(), "intervention"),
      attributions.documents == 1 ? "the document" : fmt::format("each of {} documents", attributions.documents));
  text += attributions.correlation
              ? fmt::format("rank correlation {:+.3f} (Spearman) with the exact changes of {} drawn by --seed\n",
                            *attributions.correlation, attributions.exact)
              : fmt::format("rank correlation: none ({})\n", attributions.correlation.reason());
  text += fmt::format("native    {:.4f}: {}\n\n", attributions.native, number);
  const auto name = [](const analyses::EstimatedArm& arm) {
    return printable(arm.intervention, arm.intervention.size());
  };
  std::size_t width = std::string_view("intervention").size();
  for (const analyses::EstimatedArm& arm : attributions.arms) width = std::max(width, name(arm).size());
  text +=
      fmt::format("{:<{}}  {:>10}  {:>22}  {:>10}\n", "intervention", width, "estimate", "95% over documents", "exact");
  for (const analyses::EstimatedArm& arm : attributions.arms) {
    text += fmt::format("{:<{}}  {:>+10.4f}  {:>22}  {:>10}\n", name(arm), width, arm.estimate,
                        arm.interval ? fmt::format("[{:+.4f}, {:+.4f}]", arm.interval->low, arm.interval->high) : "–",
                        arm.exact ? fmt::format("{:+.4f}", *arm.exact) : "");
  }
  return text;
}

}  // namespace gainlens::reports
