#include "reports/terminal/interventions_terminal.h"

#include "core/counted.h"
#include "core/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::ControlledArm;
using analyses::InterventionEffects;

constexpr std::size_t longest_name = 60, shown_worst = 5, many = 10;

std::string name_of(const analyses::ArmEffect& arm) {
  return printable(arm.intervention, longest_name);
}

/// "[+0.0123, +0.0456]"
std::string interval_text(const analyses::Maybe<analyses::Interval>& interval) {
  return interval ? fmt::format("[{:+.4f}, {:+.4f}]", interval->low, interval->high) : "–";
}

/// The heads that an intervention writes to: "3", or "3, 5".
std::string heads_of(const std::string& intervention) {
  constexpr std::string_view before = "[head=";
  std::vector<std::string> heads;
  for (std::size_t at = intervention.find(before); at != std::string::npos; at = intervention.find(before, at)) {
    at += before.size();
    heads.push_back(intervention.substr(at, intervention.find(']', at) - at));
  }
  return fmt::format("{}", fmt::join(heads, ", "));
}

std::string row(const ControlledArm& one, std::size_t width) {
  const analyses::ArmEffect& arm = one.arm;
  const std::string control =
      one.control ? fmt::format("{:+.4f} ({})", one.control->delta, printable(heads_of(one.control->intervention), 20))
                  : "–";
  return fmt::format("{:<{}}  {:>10.4g} {:>10.4g}  {:>10.4g}  {:>8.4f}  {:>+8.4f}  {:>20}  {:>14}\n", name_of(arm),
                     width, arm.site_norm_before, arm.site_norm_after, arm.largest_logit_change, arm.nll, arm.delta,
                     interval_text(arm.interval), control);
}

/// What all interventions changed, at least.
std::string proof(const InterventionEffects& effects) {
  const auto weakest =
      std::ranges::min_element(effects.arms, {}, [](const auto& one) { return one.arm.largest_logit_change; });
  return fmt::format(
      "acted     {} changed {} site and the logits (the least by {:.3g}); nothing before the first changed position "
      "moved\n",
      counted(effects.arms.size(), "intervention"), effects.arms.size() == 1 ? "its" : "their",
      weakest->arm.largest_logit_change);
}

std::string worst(const InterventionEffects& effects) {
  if (effects.arms.size() <= many) return {};
  std::vector<const ControlledArm*> ordered;
  for (const ControlledArm& one : effects.arms) ordered.push_back(&one);
  std::ranges::stable_sort(ordered, std::greater<>(), [](const auto* one) { return one->arm.delta; });
  std::string text = "The loss grows most with\n";
  for (std::size_t i = 0; i < shown_worst; ++i)
    text += fmt::format("  {:+.4f}  {}\n", ordered[i]->arm.delta, name_of(ordered[i]->arm));
  return text;
}

/// Which heads the numbers count.
std::string which_heads(const InterventionEffects& effects) {
  const bool any = std::ranges::any_of(
      effects.arms, [](const ControlledArm& one) { return one.arm.intervention.find("[head=") != std::string::npos; });
  return any ? "Heads at hook_k, hook_rot_k and hook_v are KV heads, at other sites query heads.\n" : "";
}

/// Why intervals are missing, each reason once.
std::string missing(const InterventionEffects& effects) {
  std::set<std::string> reasons;
  for (const ControlledArm& one : effects.arms)
    if (!one.arm.interval) reasons.insert(one.arm.interval.reason());
  std::string text;
  for (const std::string& reason : reasons) text += fmt::format("No interval: {}.\n", reason);
  return text;
}

}  // namespace

std::string print_interventions(const InterventionEffects& effects, const std::string& of) {
  std::size_t width = std::string_view("intervention").size();
  for (const ControlledArm& one : effects.arms) width = std::max(width, name_of(one.arm).size());
  std::string text = proof(effects);
  text += fmt::format("native    {:.4f} nats per token; {}\n\n", effects.native_nll, of);
  text += fmt::format("{:<{}}  {:>21}  {:>10}  {:>8}  {:>8}  {:>20}  {:>14}\n", "", width, "norm at the site",
                      "largest", "nats per", "change", "95% over", "change");
  text += fmt::format("{:<{}}  {:>10} {:>10}  {:>10}  {:>8}  {:>8}  {:>20}  {:>14}\n", "intervention", width, "before",
                      "after", "logit", "token", "of it", "documents", "control (head)");
  for (const ControlledArm& one : effects.arms) text += row(one, width);
  return text + which_heads(effects) + missing(effects) + worst(effects);
}

}  // namespace gainlens::reports
