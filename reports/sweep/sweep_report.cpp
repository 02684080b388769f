#include "reports/sweep/sweep_report.h"

#include "analyses/comparison.h"
#include "core/check.h"
#include "core/number_ranges.h"
#include "reports/figures/palette.h"
#include "reports/page/page_style.h"
#include "reports/page/typography.h"
#include "reports/sweep/run_words.h"
#include "reports/sweep/sections.h"
#include "reports/words/numbers.h"

namespace gainlens::reports {
namespace {

/// The number of layers, and which they are if they are not the first ones.
std::string measured_layers(const std::vector<std::int64_t>& layers) {
  if (layers.back() + 1 == std::ssize(layers)) return counted(layers.size(), "layer");
  return fmt::format("{} ({})", counted(layers.size(), "measured layer"), number_ranges(layers));
}

std::string model_phrase(const runfile::Request& request) {
  return fmt::format("{}, {} × {} ({}, {} dimensions){}{}{}", request.family, measured_layers(request.layers),
                     counted(request.heads, "head"), runfile::kv_heads_in_words(request), request.head_dim,
                     request.gated ? ", with attention gates" : "",
                     request.sink_logits ? ", with learned sink logits" : "",
                     request.filtered ? ", with a Bayesian filter (BFT)" : "");
}

/// "gemma-3-270m on wiki.test.txt" of one run; "plain, gated" of several.
std::string subject(Runs runs) {
  if (runs.size() == 1) return fmt::format("{} on {}", model_name(runs.front()), text_name(runs.front()));
  std::string text;
  for (const SweepRun& run : runs) text += (text.empty() ? "" : ", ") + run.label();
  return text;
}

/// Model and text, and one line of what was run.
std::string header(Runs runs) {
  std::string models;
  for (const SweepRun& run : runs)
    models +=
        fmt::format("{}{}{}", models.empty() ? "" : "; ",
                    runs.size() > 1 ? fmt::format("{}: {} on {}, ", run.label(), model_name(run), text_name(run)) : "",
                    model_phrase(run.request()));
  return fmt::format("<header>\n<h1>Attention of {}</h1>\n<p class=\"lead\">{}{}.</p>\n</header>\n",
                     escape_html(subject(runs)), runs.size() == 1 ? run_line(runs.front()) + " " : "",
                     escape_html(models));
}

}  // namespace

const std::vector<const Section<SweepRun>*> sweep_sections = {
    &summary_section,     &explore_section, &heads_section,       &context_section,    &sinks_section,
    &value_norms_section, &depth_section,   &differences_section, &neighbours_section, &checks_section,
    &caveats_section,     &runs_section,    &policies_section,    &files_section,      &verdicts_section,
    &gain_theory_section, &audit_section};

std::vector<SweepRun> overlay(std::span<const RunInput> inputs, const analyses::Options& options) {
  CHECK(!inputs.empty() && inputs.size() <= max_runs, "report: {} runs; 1 to {} can be told apart in one figure",
        inputs.size(), max_runs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      CHECK(inputs[i].label != inputs[j].label, "report: two runs are called '{}'; give each a name of its own",
            printable(inputs[i].label));
      analyses::check_different(inputs[j].reader, inputs[i].reader);
    }
  }
  std::vector<SweepRun> runs;
  runs.reserve(inputs.size());  // later runs point to the first
  for (const RunInput& input : inputs) runs.emplace_back(input, options, runs.empty() ? nullptr : &runs.front());
  return runs;
}

WrittenReport write_report(std::span<const RunInput> inputs, const std::filesystem::path& out,
                           const analyses::Options& options, const Writing& writing) {
  const std::vector<SweepRun> runs = overlay(inputs, options);
  MadeReport report = make_report<SweepRun>(sweep_sections, runs);
  report.title = page_title(subject(runs));
  report.header = header(runs);
  report.leads = true;
  return write_files(report, out, writing);
}

WrittenReport write_report(const runfile::RunReader& reader, const std::filesystem::path& out,
                           const analyses::Options& options, const Writing& writing) {
  const RunInput run{"run", reader};
  return write_report({&run, 1}, out, options, writing);
}

}  // namespace gainlens::reports
