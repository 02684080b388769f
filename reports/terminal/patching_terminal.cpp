#include "reports/terminal/patching_terminal.h"

#include "core/counted.h"
#include "core/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gainlens::reports {
namespace {

using analyses::DirectionResult;
using analyses::PatchGrid;
using analyses::PatchingEffects;
using analyses::PatchResult;
using runfile::PatchDirection;

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

}  // namespace gainlens::reports
