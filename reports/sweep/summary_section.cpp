#include "reports/sweep/sections.h"

#include "analyses/context.h"
#include "analyses/sink_vs_k.h"
#include "analyses/sinks.h"
#include "core/quantity.h"
#include "reports/page/typography.h"
#include "reports/sweep/run_words.h"
#include "reports/words/counts.h"
#include "reports/words/numbers.h"

namespace gainlens::reports {
namespace {

/// "n_eff goes from 12.1 to 80.3 keys and the mean of lambda_obs is multiplied by 3.1"; empty where it is not known.
std::string growth(const analyses::Context& context) {
  const analyses::ContextPoint &first = context.points.front(), &last = context.points.back();
  if (!first.n_eff || !last.n_eff || context.points.size() < 2) return {};
  return fmt::format("n_eff goes from {:.1f} to {:.1f} keys and the mean of lambda_obs is multiplied by {}",
                     first.n_eff->mean, last.n_eff->mean, shown(last.precision_ratio));
}

/// By kind of attention where there are several: a mean over them would be true of no layer.
std::string growth_sentences(const SweepRun& run) {
  const analyses::Context& context = run.of(analyses::context);
  const std::string lengths = fmt::format("From {} to {} tokens ", format_count(context.points.front().length.tokens),
                                          format_count(context.points.back().length.tokens));
  const auto& kinds = run.of(analyses::context_by_attention);
  std::string text;
  for (const auto& [attention, kind] : kinds) {
    const std::string said = growth(kind);
    if (!said.empty())
      text += fmt::format("{}in the {} layers ({}) {}", text.empty() ? "" : "; ", attention,
                          number_ranges(kind.deep_layers), said);
  }
  if (kinds.empty() && !growth(context).empty())
    text = fmt::format("in the deep layers ({}) {}", number_ranges(context.deep_layers), growth(context));
  return text.empty() ? "" : lengths + text + ". ";
}

std::string sink_sentences(const SweepRun& run) {
  const auto& sinks = run.of(analyses::sinks);
  if (!sinks || sinks->ranking.empty()) return {};
  const analyses::SinkHead& strongest = sinks->ranking.front();
  std::string text;
  for (const analyses::SinkHeads& heads : run.of(analyses::sink_vs_k).sinks) {
    text += text.empty()
                ? fmt::format("{} of {} {} a BOS mass above {}", heads.heads, counted(sinks->all_heads, "head"),
                              heads.heads == 1 ? "has" : "have", heads.threshold)
                : fmt::format(", {} above {}", heads.heads, heads.threshold);
    if (heads.heads > 0) text += fmt::format(" ({})", layers_in_words(heads.layers));
  }
  return fmt::format("Sinks: {}; the strongest head is layer {}, head {}, with {}. ", text, strongest.layer,
                     strongest.head, shown(strongest.bos_mass));
}

std::string correlation_sentence(const SweepRun& run) {
  const auto& correlation = run.of(analyses::sink_vs_k).correlations[0];
  if (!correlation || !correlation->pooled.pearson) return {};
  std::string text = fmt::format("BOS mass and K correlate with r = {:+.2f} over heads", *correlation->pooled.pearson);
  if (correlation->within_layers.pearson)
    text += fmt::format(", r = {:+.2f} within layers", *correlation->within_layers.pearson);
  return text + ". ";
}

std::string rulings(const SweepRun& run) {
  std::string text;
  for (const analyses::Prediction& prediction : run.of(verdicts_of).predictions)
    text += fmt::format("{}prediction {} ({}) is {}", text.empty() ? "" : "; ", prediction.number, prediction.title,
                        in_words(prediction.ruling));
  return text;
}

std::vector<std::string> files() {
  return {};
}

std::vector<Block> blocks(Runs runs) {
  std::vector<Block> all;
  for (const SweepRun& run : runs) {
    const std::string text = growth_sentences(run) + sink_sentences(run) + correlation_sentence(run) +
                             fmt::format("On this run {}.", rulings(run));
    all.push_back(Html{fmt::format("<p>{}{}</p>\n", label_html(runs, run), to_html(text))});
  }
  return all;
}

}  // namespace

const Section<SweepRun>& summary_section() {
  static const Section<SweepRun> section = {.name = "summary",
                                            .title = "Summary",
                                            .question = "What came out, in a paragraph?",
                                            .files = files,
                                            .blocks = blocks};
  return section;
}

}  // namespace gainlens::reports
