#include "reports/interventions/interventions_report.h"

#include "core/counted.h"
#include "reports/effect_explorer.h"
#include "reports/figures/figure_parts.h"
#include "reports/page/page_style.h"
#include "reports/page/typography.h"
#include "reports/section.h"
#include "reports/terminal/interventions_terminal.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace gainlens::reports {
namespace {

using analyses::ArmEffect, analyses::ControlledArm, analyses::DirectionResult, analyses::EffectMap;

/// Evenly spaced labels, at most `most`.
std::string ticks(const std::vector<std::int64_t>& labels, std::size_t most) {
  const std::size_t step = (labels.size() + most - 1) / most;
  std::string text;
  for (std::size_t i = 0; i < labels.size(); i += step)
    text += fmt::format("{}'{}' {}", text.empty() ? "" : ", ", labels[i], i);
  return "(" + text + ")";
}

constexpr std::size_t longest_label = 18, max_labels = 40;

/// The tokens of positions, along the axis from below.
std::string token_ticks(const EffectMap& map) {
  const std::size_t step = (map.labels.size() + max_labels - 1) / max_labels;
  std::string text;
  for (std::size_t i = 0; i < map.labels.size(); i += step) {
    text +=
        fmt::format("{}\"{} {}\" {}", text.empty() ? "" : ", ", plain(printable(map.labels[i], longest_label)), i, i);
  }
  return "rotate by 90 right (" + text + ")";
}

/// Inches that the tokens below a panel take.
double label_room(std::span<const EffectMap> maps) {
  constexpr double character_width = 0.055;
  std::size_t longest = 0;
  for (const EffectMap& map : maps) {
    for (const std::string& label : map.labels) longest = std::max(longest, std::min(label.size(), longest_label));
  }
  return longest == 0 ? 0 : character_width * static_cast<double>(longest + 3);
}

void draw(PlotScript& script, const EffectMap& map, std::size_t index, double largest, const std::string& doubtful) {
  Rows cells, hatched, missing;
  for (std::size_t layer = 0; layer < map.layers.size(); ++layer) {
    for (std::int64_t column = 0; column < map.columns; ++column) {
      const double x = static_cast<double>(column), y = static_cast<double>(layer), value = map.at(layer, column);
      if (!std::isfinite(value)) {
        missing.push_back({x, y});
        continue;
      }
      cells.push_back({x, y, value});
      if (map.doubtful_at(layer, column)) hatched.push_back({x, y});
    }
  }
  script.panel(index, plain(map.title));
  if (largest > 0) script.line("set cbrange [{:.9g}:{:.9g}]", -largest, largest);
  script.line("set xlabel '{}' offset 0,0.5", map.heads ? "head" : "position");
  script.line("set xrange [-0.5:{}]", static_cast<double>(map.columns) - 0.5)
      .line("set yrange [-0.5:{}]", static_cast<double>(map.layers.size()) - 0.5);
  std::vector<std::int64_t> columns(static_cast<std::size_t>(map.columns));
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = static_cast<std::int64_t>(i);
  script.line("set xtics {}", map.labels.empty() ? "norotate autojustify " + ticks(columns, 12) : token_ticks(map))
      .line("set ytics {}", ticks(map.layers, 14));
  std::string plot;
  const auto add = [&](const char* name, const Rows& rows, std::string_view use) {
    if (rows.empty()) return;
    const std::string block = fmt::format("{}_{}", name, index);
    script.data(block, rows);
    plot += fmt::format("{}${} using {}", plot.empty() ? "" : ", ", block, use);
  };
  add("cells", cells,
      "1:2:(0.5):(0.5):3 with boxxyerror fillcolor palette fillstyle solid 1 border linecolor rgb '#FFFFFF' notitle");
  add("missing", missing,
      "1:2:(0.5):(0.5) with boxxyerror fillcolor rgb '#D9D9D9' fillstyle solid 1 border linecolor rgb '#FFFFFF' title "
      "'not measured'");
  add("hatched", hatched,
      fmt::format("1:2:(0.5):(0.5) with boxxyerror fillcolor rgb '#7A7A7A' fillstyle transparent pattern 4 noborder "
                  "title '{}'",
                  doubtful));
  script.line("plot {}", plot);
}

using Interventions = std::span<const MeasuredInterventions>;
using Patches = std::span<const MeasuredPatches>;

constexpr std::size_t max_rows = 60;

std::string whole_name(const std::string& text) {
  return printable(text, text.size());
}

/// The arms with the largest changes first.
PaperTable interventions_table(const analyses::InterventionEffects& effects) {
  std::vector<const ControlledArm*> ordered;
  for (const ControlledArm& one : effects.arms) ordered.push_back(&one);
  std::ranges::stable_sort(ordered, std::greater<>(), [](const auto* one) { return std::abs(one->arm.shown().delta); });
  const std::size_t shown = std::min(ordered.size(), max_rows);
  const bool answer = effects.native_answer.has_value();
  PaperTable table{
      "interventions",
      fmt::format("The {} largest changes of {}, each intervention alone. Intervals are 95%, Student, over "
                  "documents. The control is the same on other heads of the layer, drawn at random. "
                  "tables/interventions.csv has all.",
                  shown, answer ? "the logit difference" : "the loss"),
      {{"intervention", true, true},
       {"norm before"},
       {"norm after"},
       {answer ? "logit difference" : "nats per token"},
       {"change"},
       {"95%"},
       {"control's change"}},
      {}};
  for (std::size_t i = 0; i < shown; ++i) {
    const ArmEffect& arm = ordered[i]->arm;
    table.rows.push_back({whole_name(arm.intervention), fmt::format("{:.4g}", arm.site_norm_before),
                          fmt::format("{:.4g}", arm.site_norm_after), fmt::format("{:.4f}", arm.shown().value),
                          fmt::format("{:+.4f}", arm.shown().delta), change_interval(arm),
                          ordered[i]->control ? fmt::format("{:+.4f}", ordered[i]->control->shown().delta) : "–"});
  }
  return table;
}

std::vector<Block> interventions_blocks(Interventions runs) {
  const analyses::InterventionEffects& effects = *runs.front().effects;
  const bool answer = effects.native_answer.has_value();
  const std::string quantity = answer ? "change of the logit difference" : "change of the loss (nats)";
  return {
      Html{fact_items(interventions_facts(effects, runs.front().of))},
      CaptionedFigure{
          "intervention-maps",
          "What each head is worth",
          {fmt::format(
               "Each cell is one head of a layer that is changed alone: the {}, mean over documents. {} Hatched "
               "cells: the 95% interval holds 0, or there is none.",
               quantity, answer ? "Below 0, the answer has lost." : "Above 0, the model has become worse."),
           "It shows which heads this model cannot do without on this text.",
           "Single changes do not add up: a head that does nothing alone may be a spare one. With many heads some "
           "intervals miss 0 by chance."},
          effect_map_figure("intervention-maps", analyses::head_maps(effects), quantity, "interval holds 0, or none")},
      interventions_table(effects)};
}

/// A cell of a map in one line: "Layer 3, head 2: change of the loss +0.1000 nats, .."
std::string words_of(const ControlledArm& one, const std::string& place) {
  const ArmEffect& arm = one.arm;
  const Maybe<Interval> interval = arm.shown().interval;
  const std::string range = arm.changes_nothing() ? "it changes nothing"
                            : interval            ? "95% " + change_interval(arm)
                                                  : "no interval: " + interval.reason();
  const std::string control = one.control ? fmt::format("control's change {:+.4f}", one.control->shown().delta)
                                          : "no control: " + one.no_control;
  return fmt::format("{}: {} {:+.4f}{}; {}; {}. {}.", place,
                     arm.answer ? "change of the logit difference" : "change of the loss", arm.shown().delta,
                     arm.answer ? "" : " nats", range, control, whole_name(arm.intervention));
}

std::vector<Block> interventions_explorer(Interventions runs) {
  const analyses::InterventionEffects& effects = *runs.front().effects;
  EffectExplorer explorer;
  const std::vector<analyses::EffectMap> maps = analyses::head_maps(effects);
  for (const analyses::EffectMap& map : maps)
    explorer.add(map.title, map, largest_effect(maps, map.heads),
                 [&](const std::string& place, std::size_t arm) { return words_of(effects.arms[arm], place); });
  return explorer.blocks("the 95% interval holds 0, or there is none");
}

const Section<MeasuredInterventions> interventions_explorer_section = {.name = "explore",
                                                                       .title = "Explore",
                                                                       .question = "What are the numbers of one head?",
                                                                       .blocks = interventions_explorer,
                                                                       .scripted = true};

void append_arm(std::vector<Cell>& row, const ArmEffect& arm) {
  row.insert(row.end(), {arm.nll, arm.delta});
  append(row, arm.interval);
  const double none = std::numeric_limits<double>::quiet_NaN();
  row.insert(row.end(), {arm.answer ? arm.answer->value : none, arm.answer ? arm.answer->delta : none});
  append(row, arm.answer ? arm.answer->interval : Maybe<Interval>::none("not asked for"));
  row.insert(row.end(), {arm.site_norm_before, arm.site_norm_after, arm.largest_logit_change});
  row.push_back(cell(arm.documents_changed));
}

std::vector<CsvTable> interventions_tables(const MeasuredInterventions& run) {
  CsvTable table{"interventions",
                 {"intervention", "control_of", "nll", "delta", "delta_low", "delta_high", "logit_difference",
                  "logit_difference_delta", "logit_difference_delta_low", "logit_difference_delta_high",
                  "site_norm_before", "site_norm_after", "largest_logit_change", "documents_changed"},
                 {}};
  for (const ControlledArm& one : run.effects->arms) {
    append_arm(table.rows.emplace_back(std::vector<Cell>{one.arm.intervention, std::string()}), one.arm);
    if (one.control)
      append_arm(table.rows.emplace_back(std::vector<Cell>{one.control->intervention, one.arm.intervention}),
                 *one.control);
  }
  return {table};
}

void interventions_json(const MeasuredInterventions& run, OrderedJson& summary) {
  summary["interventions"] = to_json(*run.effects);
}

const Section<MeasuredInterventions> interventions_section = {
    .name = "interventions",
    .title = "Interventions",
    .question = "How much worse is the model without a part of it?",
    .files = {"intervention-maps", "interventions"},
    .keys = {"interventions"},
    .blocks = interventions_blocks,
    .add_json = interventions_json,
    .tables = interventions_tables};

CaptionedFigure patching_figure(const analyses::PatchingEffects& effects, const DirectionResult& direction) {
  const bool denoising = direction.direction == runfile::PatchDirection::denoising;
  const std::string name = fmt::format("patching-{}", name_of(direction.direction));
  const bool normalised = bool(direction.patches.front().normalised);
  const std::string quantity = normalised ? "share of the way to the other run" : "metric";
  return {name,
          denoising ? "Values of the clean run in the corrupt one" : "Values of the corrupt run in the clean one",
          {fmt::format("Each cell is one patch alone. {} The metric is the {} at the last position. Hatched cells: no "
                       "logit of the last position changes.",
                       normalised ? fmt::format("0 is the {} run, 1 the {} run.", denoising ? "corrupt" : "clean",
                                                denoising ? "clean" : "corrupt")
                                  : "Both runs have the same metric, so that nothing is normalised.",
                       effects.metric_words()),
           denoising ? "It shows which places suffice to bring the answer back."
                     : "It shows which places are needed for the answer.",
           "One pair of prompts shows what these two differ in, and nothing that both need."},
          effect_map_figure(name, analyses::patch_maps(effects, direction), quantity, "changes nothing")};
}

std::vector<Block> patching_blocks(Patches runs) {
  const analyses::PatchingEffects& effects = *runs.front().effects;
  std::vector<Block> blocks = {Html{fact_items(patching_facts(effects))}};
  for (const DirectionResult& direction : effects.directions) blocks.emplace_back(patching_figure(effects, direction));
  return blocks;
}

/// A cell of a map in one line: "Layer 3, position 4 (clean Paris, corrupt Rome): .."
std::string words_of(const analyses::PatchingEffects& effects, const DirectionResult& direction, std::size_t patch,
                     const std::string& place) {
  const analyses::PatchResult& result = direction.patches[patch];
  std::string text = place;
  if (const auto position = effects.patches[patch].position) {
    const auto at = static_cast<std::size_t>(*position);
    text += fmt::format(" ({})", effects.clean.at(at) == effects.corrupt.at(at)
                                     ? whole_name(effects.clean[at])
                                     : fmt::format("clean {}, corrupt {}", whole_name(effects.clean[at]),
                                                   whole_name(effects.corrupt[at])));
  }
  if (result.normalised) text += fmt::format(": {:.4f} of the way to the other run;", *result.normalised);
  return fmt::format("{}{} {} {:.4f}{}.", text, result.normalised ? "" : ":", printable(effects.metric_words()),
                     result.effect.metric, result.changes_nothing() ? "; it changes nothing" : "");
}

std::vector<Block> patching_explorer(Patches runs) {
  const analyses::PatchingEffects& effects = *runs.front().effects;
  EffectExplorer explorer;
  for (const DirectionResult& direction : effects.directions) {
    const std::vector<analyses::EffectMap> maps = analyses::patch_maps(effects, direction);
    for (const analyses::EffectMap& map : maps)
      explorer.add(
          fmt::format("{}: {}, by {}", name_of(direction.direction), map.title, map.heads ? "heads" : "positions"), map,
          largest_effect(maps, map.heads),
          [&](const std::string& place, std::size_t patch) { return words_of(effects, direction, patch, place); });
  }
  return explorer.blocks("no logit of the last position changes");
}

const Section<MeasuredPatches> patching_explorer_section = {.name = "explore",
                                                            .title = "Explore",
                                                            .question = "What are the numbers of one patch?",
                                                            .blocks = patching_explorer,
                                                            .scripted = true};

const Section<MeasuredPatches> patching_section = {
    .name = "patching",
    .title = "Activation patching",
    .question = "Where does the answer come from?",
    .files = {"patching-denoising", "patching-noising", "patching"},
    .keys = {"patching"},
    .blocks = patching_blocks,
    .add_json = [](const MeasuredPatches& run, OrderedJson& json) { json["patching"] = to_json(*run.effects); },
    .tables = [](const MeasuredPatches& run) { return std::vector<CsvTable>{patching_table(*run.effects)}; }};

/// A prompt in quotes, or its tokens where its text is not known.
std::string prompt_words(const std::string& text, const std::vector<std::string>& tokens) {
  if (!text.empty()) return fmt::format("'{}'", whole_name(text));
  return whole_name(fmt::format("{}", fmt::join(tokens, " ")));
}

std::string header_of(const std::string& question, const std::string& lead) {
  return fmt::format("<header>\n<h1>{}</h1>\n<p class=\"lead\">{}</p>\n</header>\n", question, escape_html(lead));
}

}  // namespace

double largest_effect(std::span<const EffectMap> maps, bool heads) {
  double largest = 0;
  for (const EffectMap& map : maps) {
    if (map.heads != heads) continue;
    for (const double value : map.values) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
  }
  return largest;
}

Maybe<Figure> effect_map_figure(const std::string& name, std::span<const EffectMap> maps, const std::string& quantity,
                                const std::string& doubtful) {
  if (maps.empty()) return Maybe<Figure>::none("no two interventions are of single heads or positions of one site");
  if (maps.size() > max_panels)
    return Maybe<Figure>::none(fmt::format("{} maps; {} panels fit one figure", maps.size(), max_panels));
  const double by_heads = largest_effect(maps, true), by_positions = largest_effect(maps, false);
  std::size_t max_layers = 0;
  for (const EffectMap& map : maps) max_layers = std::max(max_layers, map.layers.size());
  if (by_heads == 0 && by_positions == 0) return Maybe<Figure>::none("all effects are 0");
  const std::size_t columns = std::min<std::size_t>(maps.size(), 2), rows = (maps.size() + columns - 1) / columns;
  PanelGrid grid{columns > 1 ? page_width : column_width, 0};
  grid.columns = static_cast<int>(columns);
  grid.rows = static_cast<int>(rows);
  grid.left = 0.4;
  grid.right = 0.85;
  grid.across = 1.25;
  const double labels = label_room(maps);
  grid.bottom = 0.6 + labels;
  grid.down = 0.85 + labels;
  const double panel = std::clamp(0.125 * static_cast<double>(max_layers), 1.1, 4.2);
  grid.height = grid.top + grid.bottom + panel * static_cast<double>(rows) + grid.down * static_cast<double>(rows - 1);
  PanelFigure script(grid);
  script.line("{}", palette_command(effect_colours))
      .line("unset grid")
      .line("set border 0")
      .line("set tics out scale 0.2")
      .line("set cbtics out scale 0.2 offset -0.6,0")
      .line("set colorbox noborder")
      .line("set cblabel \"{}\" offset 0.8,0", plain(quantity));
  script.line("set ylabel 'layer' offset 1.4,0");
  script.line("set key at graph 0, graph {:.5f} left center Left reverse", -(0.46 + labels) / grid.panel_height());
  for (std::size_t i = 0; i < maps.size(); ++i)
    draw(script, maps[i], i, maps[i].heads ? by_heads : by_positions, doubtful);
  return script.figure(name);
}

WrittenReport write_interventions_report(const MeasuredInterventions& run, const std::filesystem::path& out,
                                         const Writing& writing) {
  const Section<MeasuredInterventions>* const sections[] = {&interventions_section, &interventions_explorer_section};
  MadeReport report = make_report<MeasuredInterventions>(sections, std::span(&run, 1));
  const std::string model = whole_name(run.names.model), text = whole_name(run.names.text);
  report.title = page_title(model.empty() ? "interventions" : model, text);
  report.header =
      header_of("What does the model need?",
                fmt::format("{}, each alone, in {} on {}{}.", counted(run.effects->arms.size(), "intervention"),
                            model.empty() ? "a model" : model, text.empty() ? "" : text + ": ", printable(run.of)));
  return write_files(report, out, writing);
}

WrittenReport write_patching_report(const MeasuredPatches& run, const std::filesystem::path& out,
                                    const Writing& writing) {
  const Section<MeasuredPatches>* const sections[] = {&patching_section, &patching_explorer_section};
  MadeReport report = make_report<MeasuredPatches>(sections, std::span(&run, 1));
  const std::string model = whole_name(run.names.model);
  const std::string clean = prompt_words(run.names.clean, run.effects->clean),
                    corrupt = prompt_words(run.names.corrupt, run.effects->corrupt);
  report.title = page_title(model.empty() ? "patching" : model, fmt::format("{} and {}", clean, corrupt));
  report.header = header_of(
      "Where does the answer come from?",
      fmt::format("Activation patching{} between two prompts of {}: {} (clean) and {} (corrupt).",
                  model.empty() ? "" : " in " + model, counted(run.effects->clean.size(), "token"), clean, corrupt));
  return write_files(report, out, writing);
}

}  // namespace gainlens::reports
