#include "reports/report_page.h"

#include "core/quantity.h"
#include "reports/figures.h"
#include "reports/html.h"
#include "reports/tables.h"
#include "reports/wording.h"

#include <algorithm>

namespace gainlens::reports {
namespace {

using analyses::Measured;

// The content policy makes the browser itself refuse anything that is not in this file.
constexpr std::string_view head = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>gainlens report</title>
<style>
:root { color-scheme: light; --ink: #1b1f24; --soft: #57606a; --line: #d8dee4; --wash: #f6f8fa; --accent: #0072b2; }
* { box-sizing: border-box; }
body { margin: 0; background: #fff; color: var(--ink); font: 16px/1.55 "DejaVu Sans", Verdana, "Segoe UI", sans-serif; font-size: 15px; }
main { max-width: 1040px; margin: 0 auto; padding: 2.2rem 1.4rem 4rem; }
h1 { font-size: 1.65rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.8rem 0 .7rem; padding-top: .9rem; border-top: 1px solid var(--line); }
p { max-width: 78ch; margin: .5rem 0; }
.lead, .cannot { color: var(--soft); }
nav { font-size: .87rem; margin: 1rem 0 0; }
nav a { margin-right: 1.1em; white-space: nowrap; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: .7rem; margin: 1.4rem 0 0; }
.fact { background: var(--wash); border: 1px solid var(--line); border-radius: 6px; padding: .65rem .8rem; }
.fact b { display: block; font-size: 1.25rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.fact span { font-size: .8rem; color: var(--soft); line-height: 1.35; display: block; }
figure { margin: 1rem 0 0; }
figure svg { display: block; max-width: 100%; height: auto; }
figcaption { font-size: .9rem; margin-top: .5rem; }
.absent { background: var(--wash); border: 1px dashed #afb8c1; border-radius: 6px; padding: .8rem 1rem; color: var(--soft); }
.table { overflow-x: auto; margin: .9rem 0; }
table { border-collapse: collapse; font-size: .83rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .75rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 600; border-bottom: 1.5px solid #8c959f; }
th.text, td.text { text-align: left; }
tbody tr:hover { background: var(--wash); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1.2rem; font-size: .87rem; }
dt { font-weight: 600; }
dd { margin: 0; max-width: 80ch; overflow-wrap: anywhere; }
ul { padding-left: 1.2rem; max-width: 84ch; font-size: .9rem; }
@media (max-width: 640px) { dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; } }
@media print { nav { display: none; } figure, .table { break-inside: avoid; } }
</style>
</head>
<body>
<main>
)";

std::string fact(const std::string& value, const std::string& meaning) {
  return fmt::format("<div class=\"fact\"><b>{}</b><span>{}</span></div>\n", escape_html(value), escape_html(meaning));
}

std::string shown(const Measured& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "–";
}

std::string facts(const Results& results) {
  const analyses::ContextPoint &first = results.context.points.front(), &last = results.context.points.back();
  std::string html = "<div class=\"facts\">\n";
  if (first.n_eff && last.n_eff && results.context.points.size() > 1) {
    html += fact(
        fmt::format("{:.1f} → {:.1f}", first.n_eff->mean, last.n_eff->mean),
        fmt::format("effective keys, {} to {} tokens, deep layers", format_count(first.length.tokens), format_count(last.length.tokens)));
    html += fact(fmt::format("×{}", shown(last.precision_ratio, "{:.2f}")), "observation precision over the same range");
  }
  const Measured& error = results.gain_theory.max_relative_error;
  html += fact(error ? fmt::format("{:.2f}%", 100 * *error) : "–",
               fmt::format("largest error of the gain theory; skill {}", shown(results.gain_theory.skill, "{:.2f}")));
  const auto& correlation = results.sink_vs_k.correlations[0];
  html += fact(correlation ? shown(correlation->pooled.pearson, "{:+.2f}") : "–",
               fmt::format("Pearson r, BOS mass against K, pooled; within layers {}",
                           correlation ? shown(correlation->within_layers.pearson, "{:+.2f}") : "–"));
  html +=
      fact(fmt::format("{}", results.sink_vs_k.sinks.back().heads),
           fmt::format("of {} heads with BOS mass above {}", results.sink_vs_k.points.size(), results.sink_vs_k.sinks.back().threshold));
  return html + "</div>\n";
}

std::string heading(const Results& results) {
  const runfile::Request& request = results.request;
  return fmt::format(
      "<h1>How much evidence does attention carry?</h1>\n<p class=\"lead\">A sweep of a frozen <b>{}</b> model: {} × {} ({} of {} "
      "dimensions), {} at "
      "each of {}, {} on {}.</p>\n",
      escape_html(request.family), counted(request.layers.size(), "layer"), counted(request.heads, "head"),
      counted(request.kv_heads, "KV head"), request.head_dim, counted(request.samples, "chunk"),
      counted(results.lengths.size(), "context length"), escape_html(request.dtype), escape_html(request.device));
}

std::string figure_section(const FigureSlot& slot) {
  std::string html = fmt::format("<section id=\"{0}-section\">\n<h2>{1}</h2>\n", slot.name, escape_html(slot.title));
  if (!slot.figure) return html + fmt::format("<p class=\"absent\">Left out: {}.</p>\n</section>\n", escape_html(slot.figure.reason()));
  html += fmt::format(
      "<figure>\n{}\n<figcaption>\n<p>{}</p>\n<p class=\"cannot\"><b>What it cannot show.</b> {}</p>\n</figcaption>\n</figure>\n",
      inline_svg(slot.svg, slot.name, slot.title + ". " + slot.caption.shows), escape_html(slot.caption.shows),
      escape_html(slot.caption.cannot));
  return html + "</section>\n";
}

std::string correlations_section(const Results& results) {
  return "<section id=\"correlations-section\">\n<h2>Correlations of BOS mass with K</h2>\n" +
         html_table(correlations_table(results.sink_vs_k), {"K", "heads", "points", "Pearson", "naive p", "Spearman", "naive p"}) +
         "<p class=\"cannot\">Each p-value is naive: it takes heads as independent points. Layers set apart count only within their own "
         "attention type.</p>\n</section>\n";
}

std::string sinks_section(const Results& results) {
  std::string html = "<section id=\"sinks-section\">\n<h2>Strongest sink heads</h2>\n";
  if (!results.sinks) return html + fmt::format("<p class=\"absent\">Left out: {}.</p>\n</section>\n", escape_html(results.sinks.reason()));
  html += fmt::format("<p>The {} heads of {} with the largest BOS mass, means over chunks at {}. BOS policy: {}.</p>\n",
                      results.sinks->heads.size(), results.sinks->all_heads, escape_html(analyses::list_lengths(results.sinks->lengths)),
                      escape_html(results.request.bos_policy));
  return html +
         html_table(sinks_table(*results.sinks),
                    {"layer", "head", "attention", "BOS mass", "K", "scaled K", "n_eff (keys)", "entropy (nats)"}) +
         "</section>\n";
}

std::string policies_section(const Results& results) {
  std::string html = "<section id=\"policies-section\">\n<h2>Choices behind the numbers</h2>\n<dl>\n";
  for (const auto& [key, sentence] : results.policies) {
    std::string label = key;
    std::replace(label.begin(), label.end(), '_', ' ');
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escape_html(label == "bos" ? "BOS" : label), escape_html(sentence));
  }
  html += "</dl>\n</section>\n";
  return html;
}

std::string lengths_section(const Results& results) {
  return "<section id=\"lengths-section\">\n<h2>Context lengths</h2>\n" +
         html_table(lengths_table(results.lengths), {"tokens", "chunks", "missing", "NLL (nats per token)", "95% low", "95% high"}) +
         "<p class=\"cannot\">NLL is the mean next-token negative log likelihood over chunks.</p>\n</section>\n";
}

std::string caveats_section(const Results& results) {
  std::string html = "<section id=\"caveats-section\">\n<h2>Caveats</h2>\n<ul>\n";
  for (const std::string& caveat : results.caveats) html += fmt::format("<li>{}</li>\n", escape_html(caveat));
  return html + "</ul>\n</section>\n";
}

std::string files_section(const Results& results) {
  std::string html =
      "<section id=\"files-section\">\n<h2>Files</h2>\n<p>Every figure lies beside this page as SVG, PDF and PNG; every number in "
      "<code>summary.json</code> and <code>tables/</code>. The run was made from:</p>\n<dl>\n";
  for (const auto& [file, hash] : results.request.model)
    html += fmt::format("<dt>{}</dt><dd><code>{}</code></dd>\n", escape_html(file), escape_html(hash));
  html += fmt::format("<dt>text</dt><dd><code>{}</code></dd>\n<dt>tokenizer</dt><dd><code>{}</code></dd>\n",
                      escape_html(results.request.text), escape_html(results.request.tokenizer));
  return html + "</dl>\n</section>\n";
}

std::string navigation(const std::vector<FigureSlot>& figures) {
  std::string html = "<nav>";
  for (const FigureSlot& slot : figures) html += fmt::format("<a href=\"#{}-section\">{}</a> ", slot.name, escape_html(slot.title));
  for (const auto& [id, title] : {std::pair{"sinks", "Strongest sink heads"}, {"policies", "Choices"}, {"caveats", "Caveats"}}) {
    html += fmt::format("<a href=\"#{}-section\">{}</a> ", id, title);
  }
  return html + "</nav>\n";
}

std::string heatmap_title(const std::string& name) {
  if (name == "n_eff") return "Effective sample size by head";
  if (name == "kalman_gain") return "Kalman gain by head";
  if (name == "bos_mass") return "BOS mass by head";
  ASSERT(name == "entropy", "no title for the heat map of {}", name);
  return "Entropy by head";
}

}  // namespace

std::vector<FigureSlot> figure_slots(const Results& results) {
  std::vector<FigureSlot> slots = {
      {"context", "Context, gate and evidence", context_caption(results), context_figure(results.context), ""},
      {"gain-theory", "Gain theory", gain_theory_caption(results), gain_theory_figure(results.gain_theory), ""},
      {"sink-vs-k", "Sink against K", sink_vs_k_caption(results), sink_vs_k_figure(results.sink_vs_k), ""},
  };
  for (const HeatmapGroup& group : results.heatmaps) {
    slots.push_back(
        {"heatmap-" + group.name, heatmap_title(group.name), heatmap_caption(group, results), heatmap_figure(group.name, group.maps), ""});
  }
  slots.push_back(
      {"value-norms", "Value norms of the first keys", value_norms_caption(results), value_norms_figure(results.value_norms), ""});
  return slots;
}

std::string report_page(const Results& results, const std::vector<FigureSlot>& figures) {
  std::string html(head);
  html += heading(results) + navigation(figures) + facts(results);
  for (const FigureSlot& slot : figures) {
    html += figure_section(slot);
    if (slot.name == "sink-vs-k") html += correlations_section(results) + sinks_section(results);
  }
  html += lengths_section(results) + policies_section(results) + caveats_section(results) + files_section(results);
  return html + "</main>\n</body>\n</html>\n";
}

}  // namespace gainlens::reports
