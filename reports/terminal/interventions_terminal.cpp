#include "reports/terminal/interventions_terminal.h"

#include "core/counted.h"
#include "core/error.h"
#include "reports/measured.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::ControlledArm;
using analyses::InterventionEffects;

constexpr std::size_t shown_worst = 5, many = 10, named_idle = 8;
constexpr std::size_t widest_name = 48;  ///< a longer one stands on a line of its own, above its numbers

/// Never cut: paths and positions at its end may be all that tells two rows apart.
std::string name_of(const analyses::ArmEffect& arm) {
  return printable(arm.intervention, arm.intervention.size());
}

/// The names of some arms, the first of them if there are many.
std::string names_of(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), named_idle);
  return fmt::format(
      "{}{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      shown < names.size() ? fmt::format(" and {} more (marked in the table)", names.size() - shown) : "");
}

/// "[+0.0123, +0.0456]"
std::string interval_text(const Maybe<Interval>& interval) {
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

/// What the table compares: the loss, or where it was asked for the difference of two logits.
struct Compared {
  double value, delta;
  const Maybe<Interval>& interval;
};

Compared compared(const analyses::ArmEffect& arm) {
  if (arm.answer) return {arm.answer->value, arm.answer->delta, arm.answer->interval};
  return {arm.nll, arm.delta, arm.interval};
}

/// How much worse a model has become.
double harm(const analyses::ArmEffect& arm) {
  return arm.answer ? -arm.answer->delta : arm.delta;
}

std::string row(const ControlledArm& one, std::size_t width) {
  const analyses::ArmEffect& arm = one.arm;
  const Compared shown = compared(arm);
  const std::string control = one.control ? fmt::format("{:+.4f} ({})", compared(*one.control).delta,
                                                        printable(heads_of(one.control->intervention), 200))
                                          : "–";
  std::string name = name_of(arm);
  if (name.size() > width) name += fmt::format("\n{:<{}}", "", width);
  return fmt::format("{:<{}}  {:>10.4g} {:>10.4g}  {:>10.4g}  {:>8.4f}  {:>+8.4f}  {:>20}  {:>14}\n", name, width,
                     arm.site_norm_before, arm.site_norm_after, arm.largest_logit_change, shown.value, shown.delta,
                     arm.changes_nothing() ? "changes nothing" : interval_text(shown.interval), control);
}

/// What the interventions changed, at least, and which changed nothing.
std::vector<Fact> proof(const InterventionEffects& effects) {
  std::vector<std::string> idle, partly, idle_controls;
  double least = std::numeric_limits<double>::infinity();
  for (const ControlledArm& one : effects.arms) {
    if (one.control && one.control->changes_nothing() &&
        std::ranges::find(idle_controls, name_of(*one.control)) == idle_controls.end())
      idle_controls.push_back(name_of(*one.control));
    if (one.arm.changes_nothing()) {
      idle.push_back(name_of(one.arm));
      continue;
    }
    least = std::min(least, one.arm.largest_logit_change);
    if (one.arm.documents_changed < effects.documents) partly.push_back(name_of(one.arm));
  }
  const std::size_t acted = effects.arms.size() - idle.size();
  std::vector<Fact> facts = {
      {"acted",
       fmt::format("{}{} changed {} site and the logits{}; nothing before the first changed position moved",
                   idle.empty() ? "" : fmt::format("{} of ", acted), counted(effects.arms.size(), "intervention"),
                   acted == 1 ? "its" : "their", acted == 0 ? "" : fmt::format(" (the least by {:.3g})", least))}};
  const auto add = [&](const std::vector<std::string>& names, std::string_view one, std::string_view several) {
    if (names.empty()) return;
    facts.push_back({"", fmt::format("{} {}: {}", names.size(), names.size() == 1 ? one : several, names_of(names))});
  };
  add(idle, "changes nothing", "change nothing");
  add(partly, "changes nothing in some documents", "change nothing in some documents");
  add(idle_controls, "control changes nothing", "controls change nothing");
  return facts;
}

std::string worst(const InterventionEffects& effects) {
  if (effects.arms.size() <= many) return {};
  std::vector<const ControlledArm*> ordered;
  for (const ControlledArm& one : effects.arms) ordered.push_back(&one);
  std::ranges::stable_sort(ordered, std::greater<>(), [](const auto* one) { return harm(one->arm); });
  std::string text = effects.native_answer ? "The logit difference falls most with\n" : "The loss grows most with\n";
  for (std::size_t i = 0; i < shown_worst; ++i)
    text += fmt::format("  {:+.4f}  {}\n", compared(ordered[i]->arm).delta, name_of(ordered[i]->arm));
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
    if (!compared(one.arm).interval && !one.arm.changes_nothing()) reasons.insert(compared(one.arm).interval.reason());
  std::string text;
  for (const std::string& reason : reasons) text += fmt::format("No interval: {}.\n", reason);
  return text;
}

}  // namespace

std::vector<Fact> interventions_facts(const InterventionEffects& effects, const std::string& of) {
  std::vector<Fact> facts = proof(effects);
  const std::string difference =
      effects.native_answer ? fmt::format("logit of {} minus logit of {}: {:+.4f}; ", printable(effects.answer),
                                          printable(effects.foil), *effects.native_answer)
                            : std::string();
  facts.push_back({"native", fmt::format("{}{:.4f} nats per token; {}", difference, effects.native_nll, of)});
  return facts;
}

std::string print_interventions(const InterventionEffects& effects, const std::string& of) {
  std::size_t width = std::string_view("intervention").size();
  for (const ControlledArm& one : effects.arms) width = std::max(width, std::min(name_of(one.arm).size(), widest_name));
  constexpr std::size_t label_width = 10;
  std::string text = fact_lines(interventions_facts(effects, of), label_width) + "\n";
  const bool answer = effects.native_answer.has_value();
  text += fmt::format("{:<{}}  {:>21}  {:>10}  {:>8}  {:>8}  {:>20}  {:>14}\n", "", width, "norm at the site",
                      "largest", answer ? "logit" : "nats per", "change", "95% over", "change");
  text += fmt::format("{:<{}}  {:>10} {:>10}  {:>10}  {:>8}  {:>8}  {:>20}  {:>14}\n", "intervention", width, "before",
                      "after", "logit", answer ? "diff." : "token", "of it", "documents", "control (head)");
  for (const ControlledArm& one : effects.arms) text += row(one, width);
  return text + which_heads(effects) + missing(effects) + worst(effects);
}

}  // namespace gainlens::reports
