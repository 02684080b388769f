#include "reports/report_page.h"

#include "core/quantity.h"
#include "reports/figures.h"
#include "reports/html.h"
#include "reports/page_style.h"
#include "reports/paper_tables.h"
#include "reports/shown.h"
#include "reports/typography.h"
#include "reports/wording.h"

#include <algorithm>

namespace gainlens::reports {
namespace {

/// Numbers figures and tables as they come.
class Page {
 public:
  void section(std::string_view id, const std::string& title) {
    html_ +=
        fmt::format("{}<section id=\"{}-section\">\n<h2>{}</h2>\n", open_ ? "</section>\n" : "", id, to_html(title));
    contents_ += fmt::format("<a href=\"#{}-section\">{}</a> ", id, to_html(title));
    open_ = true;
  }
  void paragraph(const std::string& text) { html_ += fmt::format("<p>{}</p>\n", to_html(text)); }
  void table(const PaperTable& table) {
    if (!table.rows.empty()) html_ += html_table(table, ++tables_);
  }
  void figure(const FigureSlot& slot);
  void raw(const std::string& html) { html_ += html; }

  const std::string& contents() const { return contents_; }
  std::string html() const { return html_ + (open_ ? "</section>\n" : ""); }

 private:
  std::string html_;
  std::string contents_;
  int figures_ = 0;
  int tables_ = 0;
  bool open_ = false;
};

void Page::figure(const FigureSlot& slot) {
  if (!slot.figure) {
    html_ += fmt::format("<p class=\"absent\" id=\"{}\">{}. Left out: {}.</p>\n", slot.name, to_html(slot.title),
                         to_html(slot.figure.reason()));
    return;
  }
  html_ += fmt::format(
      "<figure id=\"figure-{}\"{}>\n{}\n<figcaption>\n<p><b>Figure {}. {}.</b> {}</p>\n<p class=\"can\"><b>What it can "
      "show.</b> {}</p>\n"
      "<p class=\"cannot\"><b>What it cannot show.</b> {}</p>\n</figcaption>\n</figure>\n",
      slot.name, slot.figure->width < page_width ? " class=\"column\"" : "",
      inline_svg(slot.svg, slot.name, slot.title + ". " + slot.caption.shows), ++figures_, to_html(slot.title),
      to_html(slot.caption.shows), to_html(slot.caption.can), to_html(slot.caption.cannot));
}

std::string model_sentence(const Results& run) {
  const runfile::Request& request = run.request;
  return fmt::format("{}, {} × {} ({}, {} dimensions){}{}", request.family, counted(request.layers.size(), "layer"),
                     counted(request.heads, "head"), counted(request.kv_heads, "KV head"), request.head_dim,
                     request.gated ? ", with attention gates" : "",
                     request.sink_logits ? ", with learned sink logits" : "");
}

std::string heading(const Report& report) {
  std::string runs;
  for (const Results& run : report.runs)
    runs += fmt::format("{}{}{}", runs.empty() ? "" : "; ", report.runs.size() > 1 ? run.label + ": " : "",
                        model_sentence(run));
  return fmt::format(
      "<header>\n<h1>How much evidence does attention carry?</h1>\n<p class=\"lead\">{} of frozen models over text at "
      "growing context. "
      "{}.</p>\n</header>\n",
      report.runs.size() > 1 ? counted(report.runs.size(), "sweep") : "A sweep", escape_html(runs));
}

std::string rulings(const Results& run) {
  std::string text;
  for (const analyses::Prediction& prediction : run.verdicts.predictions)
    text += fmt::format("{}prediction {} ({}) is {}", text.empty() ? "" : "; ", prediction.number, prediction.title,
                        in_words(prediction.ruling));
  return text;
}

/// The first paragraph: what came out, in numbers.
std::string abstract_of(const Results& run) {
  const analyses::ContextPoint &first = run.context.points.front(), &last = run.context.points.back();
  std::string text;
  if (first.n_eff && last.n_eff && run.context.points.size() > 1) {
    text += fmt::format(
        "From {} to {} tokens the effective sample size of the deep layers goes from {:.1f} to {:.1f} keys and the "
        "mean of lambda_obs is "
        "multiplied "
        "by {}. ",
        format_count(first.length.tokens), format_count(last.length.tokens), first.n_eff->mean, last.n_eff->mean,
        shown(last.precision_ratio));
  }
  const auto& correlation = run.sink_vs_k.correlations[0];
  if (correlation && correlation->pooled.pearson) {
    text += fmt::format("BOS mass and K correlate with r = {:+.2f} over heads", *correlation->pooled.pearson);
    if (correlation->within_layers.pearson)
      text += fmt::format(", r = {:+.2f} within layers", *correlation->within_layers.pearson);
    text += ". ";
  }
  return fmt::format("{}On this run {}.", text, rulings(run));
}

const FigureSlot& slot_of(const std::vector<FigureSlot>& figures, std::string_view name) {
  const auto found =
      std::find_if(figures.begin(), figures.end(), [&](const FigureSlot& slot) { return slot.name == name; });
  ASSERT(found != figures.end(), "no figure {}", name);
  return *found;
}

void opening(Page& page, const Report& report) {
  page.section("summary", "Summary");
  for (const Results& run : report.runs) {
    const std::string name = report.runs.size() > 1 ? fmt::format("<b>{}.</b> ", escape_html(run.label)) : "";
    page.raw(fmt::format("<p>{}{}</p>\n", name, to_html(abstract_of(run))));
  }
  page.section("runs", "What was run");
  page.table(runs_paper_table(report));
  page.section("verdicts", "The paper's predictions");
  page.table(verdicts_paper_table(report));
}

void results_sections(Page& page, const Report& report, const std::vector<FigureSlot>& figures) {
  page.section("context", "Evidence and gate by context length");
  page.figure(slot_of(figures, "context"));
  page.table(context_paper_table(report));
  const bool kinds = std::any_of(report.runs.begin(), report.runs.end(),
                                 [](const Results& run) { return !run.context_by_attention.empty(); });
  if (kinds) page.table(context_by_attention_paper_table(report));
  page.table(neighbours_paper_table(report));
  page.section("gain-theory", "Gain theory");
  page.figure(slot_of(figures, "gain-theory"));
  page.table(gain_theory_paper_table(report));
  page.table(gain_checks_paper_table(report));
  page.section("sink-vs-k", "Sinks and gain");
  page.figure(slot_of(figures, "sink-vs-k"));
  page.table(inference_paper_table(report));
  page.table(sinks_paper_table(report));
  for (const Results& run : report.runs) {
    if (!run.sinks)
      page.raw(
          fmt::format("<p class=\"absent\">Table of sink heads. Left out: {}.</p>\n", to_html(run.sinks.reason())));
  }
  page.section("heads", "Where in the model");
  for (const FigureSlot& slot : figures) {
    if (slot.name.starts_with("heatmap-")) page.figure(slot);
  }
  page.section("value-norms", "Values of the first keys");
  page.figure(slot_of(figures, "value-norms"));
}

void audit_section(Page& page, const Report& report, const std::vector<FigureSlot>& figures) {
  page.section("audit", "Audit of the paper's theory");
  for (const Results& run : report.runs) {
    const std::string name = report.runs.size() > 1 ? fmt::format("<b>{}.</b> ", escape_html(run.label)) : "";
    if (run.audit.lemma) {
      page.raw(fmt::format("<p>{}{}</p>\n", name, to_html(run.audit.lemma->finding)));
    } else {
      page.raw(fmt::format("<p class=\"absent\">{}Sink lemma. Left out: {}.</p>\n", name,
                           to_html(run.audit.lemma.reason())));
    }
  }
  page.figure(slot_of(figures, "sink-lemma"));
  page.table(lemma_paper_table(report));
  page.table(prior_shares_paper_table(report));
  page.table(statements_paper_table(report));
}

std::string listed(const std::vector<std::int64_t>& lengths) {
  std::string text;
  for (const std::int64_t tokens : lengths) text += (text.empty() ? "" : ", ") + format_count(tokens);
  return text;
}

void differences_section(Page& page, const Report& report) {
  if (report.contrasts.empty()) return;
  page.section("differences", "Differences between the runs");
  for (const Contrast& contrast : report.contrasts) {
    const analyses::Comparison& comparison = contrast.comparison;
    page.table(run_differences_paper_table(contrast));
    if (!comparison.refused.empty()) {
      page.raw(fmt::format("<p class=\"absent\">{} against {}: no numbers are compared: {}.</p>\n",
                           escape_html(contrast.second), escape_html(contrast.first), escape_html(comparison.refused)));
      continue;
    }
    page.table(differences_paper_table(contrast));
    if (comparison.lengths.empty())
      page.raw(fmt::format("<p class=\"absent\">{} and {} have no context length in common.</p>\n",
                           escape_html(contrast.first), escape_html(contrast.second)));
    if (!comparison.only_first.empty())
      page.paragraph(fmt::format("Only in {}: {} tokens.", contrast.first, listed(comparison.only_first)));
    if (!comparison.only_second.empty())
      page.paragraph(fmt::format("Only in {}: {} tokens.", contrast.second, listed(comparison.only_second)));
    std::string items;
    for (const std::string& caveat : comparison.caveats) items += fmt::format("<li>{}</li>\n", to_html(caveat));
    page.raw(fmt::format("<ul>\n{}</ul>\n", items));
  }
}

/// The sentence of each run; once where all say the same.
std::string policy(const Report& report, std::size_t which) {
  const auto sentence = [&](const Results& run) {
    const auto& [key, text] = run.policies.at(which);
    return key == "bos" ? escape_html(text) : to_html(text);  // the BOS policy is the run's own text
  };
  const std::string first = sentence(report.runs.front());
  if (std::all_of(report.runs.begin(), report.runs.end(), [&](const Results& run) { return sentence(run) == first; }))
    return first;
  std::string html;
  for (const Results& run : report.runs)
    html += fmt::format("{}{}: {}", html.empty() ? "" : "<br>", escape_html(run.label), sentence(run));
  return html;
}

/// What is common to every run first, then what only some have.
void caveats_section(Page& page, const Report& report) {
  page.section("caveats", "Caveats");
  const bool several = report.runs.size() > 1;
  const auto everywhere = [&](const std::string& caveat) {
    return std::all_of(report.runs.begin(), report.runs.end(), [&](const Results& run) {
      return std::count(run.caveats.begin(), run.caveats.end(), caveat) > 0;
    });
  };
  std::string html = "<ul>\n";
  for (const std::string& caveat : report.runs.front().caveats) {
    if (everywhere(caveat)) html += fmt::format("<li>{}</li>\n", to_html(caveat));
  }
  for (const Results& run : report.runs) {
    for (const std::string& caveat : run.caveats) {
      if (several && !everywhere(caveat))
        html += fmt::format("<li>{}: {}</li>\n", escape_html(run.label), to_html(caveat));
    }
  }
  page.raw(html + "</ul>\n");
}

void policies_section(Page& page, const Report& report) {
  page.section("policies", "Choices behind the numbers");
  std::string html = "<dl>\n";
  for (std::size_t i = 0; i < report.runs.front().policies.size(); ++i) {
    std::string label = report.runs.front().policies[i].first;
    std::replace(label.begin(), label.end(), '_', ' ');
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escape_html(label == "bos" ? "BOS" : label), policy(report, i));
  }
  page.raw(html + "</dl>\n");
}

void files_section(Page& page, const Report& report) {
  page.section("files", "Files");
  page.raw(
      "<p>Beside this page lie every figure as SVG, PDF and PNG, every number in <code>summary.json</code> and "
      "<code>tables/*.csv</code>, "
      "and every table of this "
      "page as LaTeX in <code>tables/*.tex</code>. The runs were made from files with these sha256:</p>\n");
  for (const Results& run : report.runs) {
    if (report.runs.size() > 1) page.raw(fmt::format("<h3>{}</h3>\n", escape_html(run.label)));
    std::string html = "<dl>\n";
    for (const auto& [file, hash] : run.request.model)
      html += fmt::format("<dt>{}</dt><dd><code>{}</code></dd>\n", escape_html(file), escape_html(hash));
    html += fmt::format("<dt>text</dt><dd><code>{}</code></dd>\n<dt>tokenizer</dt><dd><code>{}</code></dd>\n",
                        escape_html(run.request.text), escape_html(run.request.tokenizer));
    page.raw(html + "</dl>\n");
  }
}

std::string heatmap_title(const std::string& name) {
  if (name == "n_eff") return "Effective sample size by head";
  if (name == "kalman_gain") return "Kalman gain by head";
  if (name == "bos_mass") return "BOS mass by head";
  ASSERT(name == "entropy", "no title for the heat map of {}", name);
  return "Entropy by head";
}

}  // namespace

std::vector<FigureSlot> figure_slots(const Report& report) {
  const std::span<const Results> runs = report.runs;
  std::vector<FigureSlot> slots = {
      {"context", "Evidence and gate against context length", context_caption(runs), context_figure(runs), ""},
      {"gain-theory", "Gain theory", gain_theory_caption(runs), gain_theory_figure(runs), ""},
      {"sink-vs-k", "BOS mass against K", sink_vs_k_caption(runs), sink_vs_k_figure(runs), ""},
  };
  for (std::size_t group = 0; group < runs.front().heatmaps.size(); ++group) {
    const std::string& name = runs.front().heatmaps[group].name;
    slots.push_back(
        {"heatmap-" + name, heatmap_title(name), heatmap_caption(runs, group), heatmap_figure(runs, group), ""});
  }
  slots.push_back(
      {"value-norms", "Value norms of the first keys", value_norms_caption(runs), value_norms_figure(runs), ""});
  slots.push_back({"sink-lemma", "The sink lemma's bound against the weight of key 0", sink_lemma_caption(runs),
                   sink_lemma_figure(runs), ""});
  return slots;
}

std::string report_page(const Report& report, const std::vector<FigureSlot>& figures) {
  Page page;
  opening(page, report);
  results_sections(page, report, figures);
  audit_section(page, report, figures);
  differences_section(page, report);
  policies_section(page, report);
  caveats_section(page, report);
  files_section(page, report);
  return page_head("gainlens report") + heading(report) + "<nav aria-label=\"Contents\">" + page.contents() +
         "</nav>\n" + page.html() + "</main>\n</body>\n</html>\n";
}

}  // namespace gainlens::reports
