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

/// "From 1k to 4k tokens n_eff goes from 12.1 to 80.3 keys in the deep layers (6-7), and the mean of lambda_obs is
/// multiplied by 3.1. " Names the lengths at which growth is not judged. Empty where nothing is known.
std::string growth_sentence(const analyses::Context& context, std::string_view layers) {
  const std::string where = fmt::format("in the {} layers ({})", layers, number_ranges(context.deep_layers));
  const std::string apart = analyses::set_apart_in_words(context);
  const std::string left_out = apart.empty() ? "" : fmt::format("; not judged: {}", apart);
  if (!context.growth.judged()) {
    return apart.empty() ? "" : fmt::format("How the evidence grows {} cannot be said{}. ", where, left_out);
  }
  const analyses::ContextPoint &first = context.points[context.growth.first],
                               &last = context.points[context.growth.last];
  if (!first.n_eff || !last.n_eff) return {};
  return fmt::format(
      "From {} to {} tokens n_eff goes from {:.1f} to {:.1f} keys {}, and the mean of lambda_obs is multiplied by "
      "{}{}. ",
      format_count(first.length.tokens), format_count(last.length.tokens), first.n_eff->mean, last.n_eff->mean, where,
      shown(context.growth.precision_ratio), left_out);
}

/// By kind of attention where there are several: a mean over them would be true of no layer. The kind that decides
/// comes first.
std::string growth_sentences(const SweepRun& run) {
  const auto& kinds = run.of(analyses::context_by_attention);
  if (kinds.empty()) return growth_sentence(run.of(analyses::context), "deep");
  const analyses::KindContext& deciding = analyses::widest(kinds);
  std::string text = growth_sentence(deciding.context, deciding.attention);
  for (const analyses::KindContext& kind : kinds) {
    if (&kind != &deciding) text += growth_sentence(kind.context, kind.attention);
  }
  return text;
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
