#include "reports/gate_arms/gate_arms_report.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/quantity.h"
#include "reports/effect_explorer.h"
#include "reports/figures/figure_parts.h"
#include "reports/page/page_style.h"
#include "reports/page/table.h"
#include "reports/page/typography.h"
#include "reports/section.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::ArmInContext, analyses::GateArmEffect, analyses::GateArmEffects;

constexpr std::size_t shown_unsolved = 5, label_width = 13;

/// An arm has one style in every figure, whichever arms stand beside it. Arms of one colour belong together.
struct ArmStyle {
  std::string_view arm;
  RunStyle style;
};
constexpr ArmStyle styles[] = {
    {"constant", {colour::grey, 15, 14, 2}},
    {"gain", {colour::blue, 7, 6, 1}},
    {"scaled-gain", {colour::orange, 11, 10, 3}},
    {"modulated", {colour::green, 9, 8, 1}},
    {"permuted", {colour::vermillion, 5, 4, 2}},
    {"position", {colour::purple, 13, 12, 5}},
    {"raw", {colour::ink, 7, 6, 1}},
    {"one", {colour::ink, 5, 4, 2}},
};

const RunStyle& style_of(const GateArmEffect& effect) {
  const auto* const found = std::ranges::find(styles, std::string_view(effect.arm), &ArmStyle::arm);
  ASSERT(found != std::end(styles), "no style for arm '{}'", effect.arm);
  return found->style;
}

/// context, change, ends of its interval
Rows rows_of(const GateArmEffect& effect, std::size_t place, std::size_t places) {
  Rows rows;
  for (const analyses::ArmInContext& one : effect.contexts) {
    rows.push_back(barred_point(aside(static_cast<double>(one.tokens), place, places), one.to_native->mean,
                                one.to_native->interval));
  }
  return rows;
}

using Arms = std::vector<const GateArmEffect*>;

/// A thin line at the context that the model was trained with.
void mark_trained(PlotScript& script, std::int64_t tokens) {
  script
      .line(
          "set arrow 1 from first {0}, graph 0 to first {0}, graph 1 nohead back linewidth 0.7 dashtype 3 linecolor "
          "rgb '{1}'",
          tokens, colour::frame)
      .line("set label \"{{/:Italic T}}_{{train}}\" at first {}, graph 0.95 left offset 0.3,0", tokens);
}

void draw_arms(PlotScript& script, const Arms& arms, std::size_t panel) {
  Extent reach{0, 0};  // 0 is on the axis
  std::string plot = fmt::format("0 with lines linewidth 0.9 linecolor rgb '{}' notitle, ", colour::ink);
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const Rows rows = rows_of(*arms[i], i, arms.size());
    reach.add(rows, {1, 2, 3});
    const std::string block = fmt::format("arm_{}_{}", panel, i);
    script.data(block, rows);
    plot += barred_curve(block, rows, style_of(*arms[i]), {1.2, 0.5, 1.3});
  }
  plot.resize(plot.size() - 2);
  constexpr double headroom = 0.16;  // for the label of the line
  script.y_axis(reach.low, reach.high, headroom).line("plot {}", plot);
}

using Readings = std::span<const ReadGateArms>;

/// What the caption says of the arms that have a panel of their own; empty: there are none.
std::string other_panel(const analyses::GateArmEffects& effects) {
  std::vector<std::string> far;
  for (const GateArmEffect& effect : effects.arms)
    if (!keeps_scale(effect)) far.push_back(effect.arm);
  if (far.empty()) return {};
  const bool alone = far.size() + 1 == effects.arms.size();  // native has no curve
  return fmt::format(" {} {} the gates far from their scale{}.", fmt::join(far, " and "),
                     far.size() == 1 ? "leaves" : "leave",
                     alone ? "" : ": (b) has an axis of its own, because such changes would flatten (a)");
}

Caption gate_arms_caption(const analyses::GateArmEffects& effects) {
  return {
      fmt::format("Change of the loss by each arm, in contexts that grow to the left of the same targets; {}. The "
                  "line T_train is the context that the model was trained with, {} tokens.{} Bars are 95% "
                  "intervals over documents; points of one context stand side by side.",
                  counted(effects.documents, "document"), format_count(effects.trained_length), other_panel(effects)),
      fmt::format("It shows whether {} does better than its controls, and whether that grows with the context.",
                  effects.judged),
      "The model was trained with its own gates. A higher loss does not say that a model trained with another gate "
      "would be worse."};
}

/// What one arm does in one context.
std::string words_of(const GateArmEffect& effect, const ArmInContext& one) {
  const analyses::ArmDifference& change = *one.to_native;
  return fmt::format(
      "{} at {}: loss {:.4f}, {:+.4f} from native{}; mean gate {:.3f}, BOS mass {:.3f}, n_eff {:.1f}.", effect.arm,
      format_count(one.tokens), one.nll, change.mean,
      change.interval ? fmt::format("; 95% [{:+.4f}, {:+.4f}]", change.interval->low, change.interval->high) : "",
      one.gate_mean, one.bos_mass, one.n_eff);
}

/// The arms that keep the gates' scale, or the others: those have changes beside which all else would be pale.
NamedEffects map_of(const analyses::GateArmEffects& effects, bool scaled) {
  NamedEffects map;
  map.title = scaled ? "change of the loss" : "change of the loss with K, or 1, as the gate";
  map.axes = "arm ↓ context →";
  for (const ArmInContext& one : effects.arms.front().contexts) map.columns.push_back(format_count(one.tokens));
  for (const GateArmEffect& effect : effects.arms) {
    if (!effect.slope || keeps_scale(effect) != scaled) continue;  // native has no change
    map.rows.push_back(effect.arm);
    for (const ArmInContext& one : effect.contexts) {
      const auto& interval = one.to_native->interval;
      if (!interval || (interval->low <= 0 && interval->high >= 0)) map.doubtful.push_back(map.values.size());
      map.values.push_back(one.to_native->mean);
      map.cells.push_back(words_of(effect, one));
    }
  }
  return map;
}

std::vector<Block> gate_arms_explorer(Readings readings) {
  EffectExplorer explorer;
  for (const bool scaled : {true, false}) {
    const NamedEffects map = map_of(*readings.front().effects, scaled);
    if (!map.rows.empty()) explorer.add(map);
  }
  return explorer.blocks("the 95% interval holds 0, or there is none");
}

const Section<ReadGateArms> gate_arms_explorer_section = {.name = "explore",
                                                          .title = "Explore",
                                                          .question = "What are the numbers of one arm in one context?",
                                                          .blocks = gate_arms_explorer,
                                                          .scripted = true};

std::vector<Block> gate_arms_blocks(Readings readings) {
  const analyses::GateArmEffects& effects = *readings.front().effects;
  std::vector<Block> blocks = {
      paragraph(gate_arms_ruling(effects) + "."), list(effects.reasons),
      CaptionedFigure{"gate-arms", "Loss by context and arm", gate_arms_caption(effects), gate_arms_figure(effects)}};
  for (const Table& table : {contexts_of(effects), rulings_of(effects), comparisons_of(effects)})
    blocks.emplace_back(paper_table(table));
  blocks.emplace_back(Html{fact_items(gate_arms_facts(effects, readings.front().of))});
  return blocks;
}

void add_gate_arms_json(const ReadGateArms& reading, OrderedJson& summary) {
  summary["gate_arms"] = analyses::to_json(*reading.effects);
}

std::vector<CsvTable> gate_arms_tables(const ReadGateArms& reading) {
  const analyses::GateArmEffects& effects = *reading.effects;
  return {csv_table(contexts_of(effects), "gate-arms"), csv_table(rulings_of(effects)),
          csv_table(comparisons_of(effects))};
}

const Section<ReadGateArms> gate_arms_section = {
    .name = "gate-arms",
    .title = "K in the place of a gate",
    .question = "What happens if K stands in the place of a gate?",
    .files = {"gate-arms", "gate-arms-by-context", "gate-arms-rulings", "gate-arms-comparisons"},
    .keys = {"gate_arms"},
    .blocks = gate_arms_blocks,
    .add_json = add_gate_arms_json,
    .tables = gate_arms_tables};

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

bool keeps_scale(const GateArmEffect& effect) {
  return effect.arm != "raw" && effect.arm != "one";
}

Maybe<Figure> gate_arms_figure(const GateArmEffects& effects) {
  using Result = Maybe<Figure>;
  if (effects.arms.front().contexts.size() < 2) return Result::none("there is one context");
  Arms with_scale, without;
  std::vector<LegendEntry> legend;
  for (const GateArmEffect& effect : effects.arms) {
    if (!effect.slope) continue;  // native
    (keeps_scale(effect) ? with_scale : without).push_back(&effect);
    const RunStyle& style = style_of(effect);
    legend.push_back({plain(effect.arm), style.colour, style.marker, style.dash});
  }
  std::vector<Arms> panels;
  for (const Arms& arms : {with_scale, without})
    if (!arms.empty()) panels.push_back(arms);
  std::vector<std::int64_t> contexts;
  for (const analyses::ArmInContext& one : effects.arms.front().contexts) contexts.push_back(one.tokens);

  PanelGrid grid{column_width, 0};
  grid.left = 0.55;
  grid.rows = static_cast<int>(panels.size());
  grid.down = 0.46;
  const double panel_height = panels.size() > 1 ? 1.4 : 1.66;
  grid.height = grid.top + grid.bottom + grid.rows * panel_height + (grid.rows - 1) * grid.down;
  PanelFigure script(grid, legend);
  script.length_axis(contexts, grid.panel_width());
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const bool scaled = keeps_scale(*panels[i].front());
    script.panel(i, scaled ? "change of the loss, nats per token" : "the same with K, or 1, as the gate");
    mark_trained(script, effects.trained_length);
    // The panels share their axis.
    script.line("set xlabel '{}' offset 0,0.5", i + 1 == panels.size() ? "context (tokens)" : "");
    draw_arms(script, panels[i], i);
  }
  return script.figure("gate-arms");
}

WrittenReport write_gate_arms_report(const analyses::GateArmEffects& effects, const std::string& of,
                                     const std::filesystem::path& out, const Writing& writing) {
  const ReadGateArms readings[] = {{&effects, of}};
  const Section<ReadGateArms>* const sections[] = {&gate_arms_section, &gate_arms_explorer_section};
  MadeReport report = make_report<ReadGateArms>(sections, readings);
  report.title = page_title("K in the place of a gate", of);
  report.header =
      "<header>\n<h1>What happens if K stands in the place of a gate?</h1>\n<p class=\"lead\">The gain of the filter, "
      "and controls of it, in the place of a frozen model's gates, as the context grows.</p>\n</header>\n";
  return write_files(report, out, writing);
}

}  // namespace gainlens::reports
