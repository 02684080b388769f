#include "reports/sensitivity/sensitivity_report.h"

#include "analyses/paper_knobs.h"
#include "core/counted.h"
#include "reports/page/page_style.h"
#include "reports/page/typography.h"
#include "reports/section.h"
#include "reports/sensitivity/sensitivity_words.h"

#include <algorithm>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::KnobResult;
using analyses::Sensitivity;
using analyses::SettingResult;
using Results = std::span<const Sensitivity>;

constexpr KnobGroup groups[] = {KnobGroup::flat, KnobGroup::tunable, KnobGroup::other};

std::string title_of(KnobGroup group) {
  switch (group) {
    case KnobGroup::flat:
      return "The knobs that the paper calls flat";
    case KnobGroup::tunable:
      return "The knobs that the paper calls worth tuning";
    case KnobGroup::other:
      return "Other knobs";
  }
  return "";
}

Caption caption_of(const Sensitivity& sensitivity) {
  return {
      fmt::format(
          "Each panel varies one setting of {} and keeps the others. Points are means of {} over {}; the circled one "
          "is the reference, whose mean is the dashed line. Bars are 95% intervals of the paired change from the "
          "reference, over seeds and users; the grey band is the margin of ±{:g}%. Squares differ after Holm's "
          "correction over all settings of all knobs. On logarithmic axes a 0 stands left of the smallest value; ticks "
          "without a number are settings whose numbers would touch.",
          sensitivity.arm, sensitivity.metric.title(), counted(sensitivity.seeds.size(), "seed"),
          100 * sensitivity.margin),
      "It shows which changes are shown, and how large the others may be.",
      "A bar that crosses the dashed line does not show that a setting has no effect: flat is what lies in the "
      "band. Settings of one knob that act together with another are not seen."};
}

PaperTable answers(const Sensitivity& sensitivity) {
  PaperTable table{"sensitivity-knobs",
                   fmt::format("What the settings of each knob do to {}, beside what the paper says (Beauty, HR@10, 10 "
                               "seeds).",
                               sensitivity.metric.title()),
                   {{"knob", true}, {"this run", true}, {"paper", true}},
                   {}};
  for (const KnobResult& knob : sensitivity.knobs) {
    const analyses::PaperKnob* const known = analyses::find_paper_knob(knob.key);
    table.rows.push_back(
        {knob_name(knob), knob.in_words(sensitivity.margin), known == nullptr ? "–" : std::string(known->says)});
  }
  return table;
}

PaperTable details(const Sensitivity& sensitivity) {
  PaperTable table{
      "sensitivity-settings",
      "Each setting against the reference. Flat within: the smallest margin within which the setting would "
      "be shown to be flat.",
      {},
      {}};
  for (const std::string& heading : setting_headings()) table.columns.push_back({heading, table.columns.empty()});
  for (const KnobResult& knob : sensitivity.knobs) {
    table.rows.push_back({knob_name(knob)});
    table.rows.push_back(reference_cells(sensitivity, knob));
    for (const SettingResult& setting : knob.settings) table.rows.push_back(setting_cells(setting));
  }
  return table;
}

std::vector<Block> blocks(Results results) {
  std::vector<Block> all;
  for (const Sensitivity& sensitivity : results) {
    all.emplace_back(answers(sensitivity));
    all.push_back(paragraph(power_in_words(sensitivity)));
    for (const KnobGroup group : groups) {
      Maybe<Figure> figure = sensitivity_figure(sensitivity, group);
      if (group == KnobGroup::other && !figure) continue;
      all.emplace_back(CaptionedFigure{figure_name(group), title_of(group), caption_of(sensitivity), figure});
    }
    all.emplace_back(details(sensitivity));
    for (const analyses::LeftOutVariant& variant : sensitivity.left_out)
      all.push_back(absence(fmt::format("{} is left out: {}.", variant.arm, variant.reason)));
  }
  return all;
}

void add_json(const Sensitivity& sensitivity, OrderedJson& summary) {
  summary["sensitivity"] = analyses::to_json(sensitivity);
}

void add_row(CsvTable& table, const KnobResult& knob, const SettingResult& setting) {
  table.rows.push_back({knob.key, setting.text, cell(setting.seeds.size()), setting.summary.mean,
                        cell(setting.summary.deviation),
                        setting.change ? analyses::relative_change(setting.change->value) : empty_cell()});
  append(table.rows.back(), analyses::relative_change(analyses::stated_interval(setting.change)));
  for (const Measured& value : {setting.p, setting.holm, setting.equivalence.p, setting.reach()})
    table.rows.back().push_back(cell(value));
}

std::vector<CsvTable> tables(const Sensitivity& sensitivity) {
  CsvTable table{"sensitivity",
                 {"knob", "setting", "seeds", "mean", "deviation", "change", "change_low", "change_high", "p", "p_holm",
                  "equivalence_p", "least_margin"},
                 {}};
  for (const KnobResult& knob : sensitivity.knobs) {
    table.rows.push_back({knob.key, knob.reference_text, cell(sensitivity.seeds.size()), sensitivity.reference.mean,
                          cell(sensitivity.reference.deviation), 0.0});
    table.rows.back().resize(table.header.size(), empty_cell());
    for (const SettingResult& setting : knob.settings) add_row(table, knob, setting);
  }
  return {table};
}

std::vector<std::string> files() {
  std::vector<std::string> names = {"sensitivity", "sensitivity-knobs", "sensitivity-settings"};
  for (const KnobGroup group : groups) names.push_back(figure_name(group));
  return names;
}

const Section<Sensitivity> sensitivity_section = {.name = "sensitivity",
                                                  .title = "Sensitivity",
                                                  .question = "Which settings matter?",
                                                  .files = files(),
                                                  .keys = {"sensitivity"},
                                                  .blocks = blocks,
                                                  .add_json = add_json,
                                                  .tables = tables};

}  // namespace

WrittenReport write_sensitivity_report(const Sensitivity& sensitivity, const std::filesystem::path& out,
                                       const std::vector<std::string>& notes) {
  const Section<Sensitivity>* const sections[] = {&sensitivity_section};
  MadeReport report = make_report<Sensitivity>(sections, std::span(&sensitivity, 1));
  report.title = page_title("settings of " + printable(sensitivity.arm, 60), printable(sensitivity.data_set, 60));
  report.header = fmt::format(
      "<header>\n<h1>Which settings of the filter matter?</h1>\n<p class=\"lead\">One setting of {} at a time, on {}: "
      "what shows a change of {}, what is shown to be flat, and what is not decided.</p>\n{}</header>\n",
      escape_html(sensitivity.arm), escape_html(sensitivity.data_set), escape_html(sensitivity.metric.title()),
      paragraphs_of(notes));
  if (!notes.empty()) report.summary["notes"] = notes;
  return write_files(report, out);
}

}  // namespace gainlens::reports
