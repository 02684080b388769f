#include "reports/terminal/interventions_terminal.h"

#include "core/counted.h"
#include "core/error.h"
#include "reports/measured.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::Attributions, analyses::ControlledArm, analyses::DirectionResult, analyses::EstimatedArm,
    analyses::EstimatedKind, analyses::InterventionEffects, analyses::PatchGrid, analyses::PatchingEffects,
    analyses::PatchResult, runfile::PatchDirection;

constexpr std::int64_t widest = 16;
constexpr std::size_t strongest = 10;

std::string number_of(const PatchResult& result) {
  if (result.changes_nothing()) return ".";
  return result.normalised ? fmt::format("{:+.3f}", *result.normalised) : fmt::format("{:+.3f}", result.effect.metric);
}

/// The patches that changed something, and those that did not.
std::vector<Fact> proof(const PatchingEffects& effects) {
  std::vector<Fact> facts;
  for (const DirectionResult& direction : effects.directions) {
    std::size_t acted = 0;
    double least = std::numeric_limits<double>::infinity();
    for (const PatchResult& result : direction.patches) {
      if (result.changes_nothing()) continue;
      ++acted;
      least = std::min(least, result.effect.largest_logit_change);
    }
    facts.push_back({std::string(name_of(direction.direction)),
                     fmt::format("{} of {} changed the logits of the last position{}", acted,
                                 direction.patches.size() == 1 ? std::string("1 patch")
                                                               : fmt::format("{} patches", direction.patches.size()),
                                 acted == 0 ? "" : fmt::format(" (the least by {:.3g})", least))});
  }
  facts.push_back({"", "nothing before the first changed position moved"});
  return facts;
}

/// The tokens, and where they differ.
std::string prompts_of(const PatchingEffects& effects) {
  std::string text;
  for (std::size_t i = 0; i < effects.clean.size(); ++i) {
    if (effects.clean[i] == effects.corrupt[i]) continue;
    text += fmt::format("{}{} {} | {}", text.empty() ? "" : ", ", i, printable(effects.clean[i]),
                        printable(effects.corrupt[i]));
  }
  return fmt::format("{}; they differ at position {} (clean | corrupt)", counted(effects.clean.size(), "token"), text);
}

std::string meaning(const DirectionResult& direction) {
  return direction.direction == PatchDirection::denoising
             ? "denoising: values of the clean run in the corrupt one (0: the corrupt run, 1: the clean run)"
             : "noising: values of the corrupt run in the clean one (0: the clean run, 1: the corrupt run)";
}

std::string whole_map(const PatchGrid& grid, const DirectionResult& direction) {
  std::string text = fmt::format("{:>7}", "layer");
  for (std::int64_t column = 0; column < grid.columns; ++column) text += fmt::format(" {:>7}", column);
  text += '\n';
  for (std::size_t row = 0; row < grid.layers.size(); ++row) {
    text += fmt::format("{:>7}", grid.layers[row]);
    for (std::int64_t column = 0; column < grid.columns; ++column) {
      const auto place = grid.at(row, column);
      text += fmt::format(" {:>7}", place ? number_of(direction.patches[*place]) : "");
    }
    text += '\n';
  }
  return text;
}

/// How far a patch moved its run.
double strength(const DirectionResult& direction, const PatchResult& result) {
  return std::abs(result.effect.metric - direction.base);
}

std::string rows_of(const PatchingEffects& effects, const DirectionResult& direction, std::vector<std::size_t> places,
                    std::size_t most) {
  std::ranges::stable_sort(places, std::greater<>(),
                           [&](std::size_t i) { return strength(direction, direction.patches[i]); });
  places.resize(std::min(places.size(), most));
  std::size_t width = 0;
  const auto name = [&](std::size_t i) { return printable(effects.patches[i].text, effects.patches[i].text.size()); };
  for (const std::size_t i : places) width = std::max(width, name(i).size());
  std::string text;
  for (const std::size_t i : places) {
    const PatchResult& result = direction.patches[i];
    text += fmt::format("  {:<{}}  {:>7}  metric {:+.4f}{}\n", name(i), width, number_of(result), result.effect.metric,
                        result.changes_nothing() ? "  changes nothing" : "");
  }
  return text;
}

std::string one_direction(const PatchingEffects& effects, const DirectionResult& direction) {
  std::string text = '\n' + meaning(direction) + '\n';
  std::vector<bool> shown(effects.patches.size());
  for (const PatchGrid& grid : effects.grids) {
    text += fmt::format("{} by layer and {}", grid.site, grid.heads ? "head" : "position");
    std::vector<std::size_t> places;
    for (const auto& place : grid.cells) {
      if (place) places.push_back(*place);
    }
    for (const std::size_t i : places) shown[i] = true;
    const bool fits = grid.columns <= widest;
    text += fits ? "\n" + whole_map(grid, direction)
                 : fmt::format(": the {} strongest of {}\n", std::min(strongest, places.size()), places.size()) +
                       rows_of(effects, direction, places, strongest);
  }
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (!shown[i]) others.push_back(i);
  }
  return text + rows_of(effects, direction, others, others.size());
}

Cell whole(const std::optional<std::int64_t>& number) {
  return number ? Cell(*number) : Cell(std::string());
}

constexpr std::size_t max_estimates = 40;

std::string whole(const std::string& text) {
  return printable(text, text.size());
}

/// "+0.946 [+0.884, +0.976]"
std::string correlation_cell(const EstimatedKind& kind) {
  if (!kind.correlation) return fmt::format("none ({})", kind.correlation.reason());
  const std::string value = fmt::format("{:+.3f}", *kind.correlation);
  if (!kind.interval) return value;
  return fmt::format("{} [{:+.3f}, {:+.3f}]", value, kind.interval->low, kind.interval->high);
}

/// How far the estimates can be trusted.
std::string kinds_table(const Attributions& attributions) {
  std::size_t width = std::string_view("kind").size();
  for (const EstimatedKind& kind : attributions.kinds) width = std::max(width, whole(kind.kind).size());
  std::string text = fmt::format("{:<{}}  {:>13}  {:>7}  {:>5}  rank correlation\n", "kind", width, "interventions",
                                 "can act", "exact");
  for (const EstimatedKind& kind : attributions.kinds) {
    text += fmt::format("{:<{}}  {:>13}  {:>7}  {:>5}  {}\n", whole(kind.kind), width, kind.arms, kind.acting,
                        kind.exact, correlation_cell(kind));
  }
  return text +
         "The correlation is Spearman's, of the estimates and exact changes of those that --seed drew; the interval "
         "is\n"
         "that of all that can act.\n"
         "Trust the other estimates of a kind only as far as it is near 1.\n";
}

std::string share(const Measured& normalised) {
  return normalised ? fmt::format("{:+.3f}", *normalised) : "–";
}

std::string row_of(const Attributions& attributions, const EstimatedArm& arm, std::size_t width) {
  const std::string exact = arm.exact ? fmt::format("{:+.4f}", *arm.exact) : "";
  if (!attributions.other) {
    const std::string interval =
        arm.interval ? fmt::format("[{:+.4f}, {:+.4f}]", arm.interval->low, arm.interval->high) : "–";
    return fmt::format("{:<{}}  {:>+10.4f}  {:>22}  {:>10}\n", whole(arm.intervention), width, arm.estimate, interval,
                       exact);
  }
  return fmt::format("{:<{}}  {:>+10.4f}  {:>8}  {:>10}  {:>8}\n", whole(arm.intervention), width, arm.estimate,
                     share(attributions.normalised(arm.estimate)), exact,
                     arm.exact ? share(attributions.normalised(*arm.exact)) : "");
}

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

/// How much worse a model has become.
double harm(const analyses::ArmEffect& arm) {
  return arm.answer ? -arm.answer->delta : arm.delta;
}

std::string row(const ControlledArm& one, std::size_t width) {
  const analyses::ArmEffect& arm = one.arm;
  const analyses::ChangedMean shown = arm.shown();
  const std::string control = one.control ? fmt::format("{:+.4f} ({})", one.control->shown().delta,
                                                        printable(heads_of(one.control->intervention), 200))
                                          : "–";
  std::string name = name_of(arm);
  if (name.size() > width) name += fmt::format("\n{:<{}}", "", width);
  return fmt::format("{:<{}}  {:>10.4g} {:>10.4g}  {:>10.4g}  {:>8.4f}  {:>+8.4f}  {:>20}  {:>14}\n", name, width,
                     arm.site_norm_before, arm.site_norm_after, arm.largest_logit_change, shown.value, shown.delta,
                     change_interval(arm), control);
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
    text += fmt::format("  {:+.4f}  {}\n", ordered[i]->arm.shown().delta, name_of(ordered[i]->arm));
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
    if (const auto interval = one.arm.shown().interval; !interval && !one.arm.changes_nothing())
      reasons.insert(interval.reason());
  std::string text;
  for (const std::string& reason : reasons) text += fmt::format("No interval: {}.\n", reason);
  return text;
}

}  // namespace

std::vector<Fact> patching_facts(const PatchingEffects& effects) {
  std::vector<Fact> facts = proof(effects);
  facts.push_back({"prompts", prompts_of(effects)});
  facts.push_back({"metric", fmt::format("{} at the last position: clean {:+.4f}, corrupt {:+.4f}",
                                         effects.metric_words(), effects.clean_metric(), effects.corrupt_metric())});
  return facts;
}

std::string print_patching(const PatchingEffects& effects, const std::string& bos) {
  constexpr std::size_t label_width = 10;
  std::vector<Fact> facts = patching_facts(effects);
  facts.push_back({"", bos});
  std::string text = fact_lines(facts, label_width);
  for (const DirectionResult& direction : effects.directions) text += one_direction(effects, direction);
  const Measured& one = effects.directions.front().patches.front().normalised;
  text +=
      one ? "A dot: the patch changes nothing at the last position.\n"
          : fmt::format("The numbers are the metric itself: {}, so that nothing can be normalised.\n", one.reason());
  return text;
}

CsvTable patching_table(const PatchingEffects& effects) {
  CsvTable table{
      "patching",
      {"direction", "intervention", "site", "layer", "head", "position", "clean_token", "corrupt_token", "base",
       "other", "metric", "normalised", "site_norm_before", "site_norm_after", "largest_logit_change"},
      {}};
  for (const DirectionResult& direction : effects.directions) {
    for (std::size_t i = 0; i < direction.patches.size(); ++i) {
      const runfile::Patch& patch = effects.patches[i];
      const PatchResult& result = direction.patches[i];
      const auto token = [&](const std::vector<std::string>& texts) {
        return patch.position ? texts.at(static_cast<std::size_t>(*patch.position)) : std::string();
      };
      table.rows.push_back({std::string(name_of(direction.direction)), patch.text, patch.site,
                            patch.site.empty() ? Cell(std::string()) : Cell(patch.layer), whole(patch.head),
                            whole(patch.position), token(effects.clean), token(effects.corrupt), direction.base,
                            direction.other, result.effect.metric, cell(result.normalised),
                            result.effect.site_norm_before, result.effect.site_norm_after,
                            result.effect.largest_logit_change});
    }
  }
  return table;
}

std::string print_attributions(const Attributions& attributions, const std::string& number) {
  std::string text = fmt::format(
      "estimated {} by one backward pass of {}\n\n", counted(attributions.arms.size(), "intervention"),
      attributions.documents == 1 ? "the document" : fmt::format("each of {} documents", attributions.documents));
  text += kinds_table(attributions) + '\n';
  text += attributions.other ? fmt::format("patched run {:.4f}, other run {:.4f}: {}\n\n", attributions.native,
                                           *attributions.other, number)
                             : fmt::format("native    {:.4f}: {}\n\n", attributions.native, number);
  const std::vector<std::size_t> places = analyses::by_size(attributions);
  const std::size_t shown = std::min(places.size(), max_estimates);
  std::size_t width = std::string_view("intervention").size();
  for (std::size_t i = 0; i < shown; ++i)
    width = std::max(width, whole(attributions.arms[places[i]].intervention).size());
  text += attributions.other ? fmt::format("{:<{}}  {:>10}  {:>8}  {:>10}  {:>8}\n", "intervention", width, "estimate",
                                           "share", "exact", "share")
                             : fmt::format("{:<{}}  {:>10}  {:>22}  {:>10}\n", "intervention", width, "estimate",
                                           "95% over documents", "exact");
  for (std::size_t i = 0; i < shown; ++i) text += row_of(attributions, attributions.arms[places[i]], width);
  if (attributions.other) text += "A share is the change over the difference of the two runs: 1 is all of it.\n";
  if (shown < places.size())
    text += fmt::format("{} with smaller estimates are left out; --json and --out FILE.csv have all.\n",
                        places.size() - shown);
  return text;
}

CsvTable attributions_table(std::span<const NamedAttributions> all) {
  CsvTable table{"attributions",
                 {"direction", "intervention", "kind", "can_act", "estimate", "estimate_low", "estimate_high",
                  "estimate_normalised", "exact", "exact_normalised"},
                 {}};
  const auto none = Measured::none("not measured");
  for (const auto& [direction, estimates] : all) {
    for (const EstimatedArm& arm : estimates.arms) {
      std::vector<Cell>& row = table.rows.emplace_back(
          std::vector<Cell>{direction, arm.intervention, arm.kind, std::int64_t{arm.acts}, arm.estimate});
      append(row, arm.interval);
      row.push_back(cell(estimates.normalised(arm.estimate)));
      row.push_back(cell(arm.exact ? Measured(*arm.exact) : none));
      row.push_back(cell(arm.exact ? estimates.normalised(*arm.exact) : none));
    }
  }
  return table;
}

std::string change_interval(const analyses::ArmEffect& arm) {
  if (arm.changes_nothing()) return "changes nothing";
  const Maybe<Interval> interval = arm.shown().interval;
  return interval ? fmt::format("[{:+.4f}, {:+.4f}]", interval->low, interval->high) : "–";
}

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
