#include "reports/sweep/sections.h"

#include "analyses/context.h"
#include "analyses/sink_vs_k.h"
#include "core/quantity.h"
#include "reports/page/typography.h"
#include "reports/words/numbers.h"
#include "runfile/query_windows.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace gainlens::reports {
namespace {

using Caveats = std::vector<std::string>;

void add_length_caveats(Caveats& list, const SweepRun& run) {
  const runfile::Request& request = run.request();
  for (const LengthFacts& facts : run.of(length_facts)) {
    const std::string tokens = format_count(facts.length.tokens);
    if (facts.length.samples.empty()) {
      list.push_back(
          fmt::format("No chunk of {} tokens is complete. This length is left out of every figure.", tokens));
    } else if (facts.length.missing > 0) {
      list.push_back(fmt::format("{} of {} of {} tokens {} missing and left out.", facts.length.missing,
                                 counted(request.samples, "chunk"), tokens, facts.length.missing == 1 ? "is" : "are"));
    }
    if (request.max_positions > 0 && facts.length.tokens > request.max_positions)
      list.push_back(fmt::format("{} tokens exceed the model's {} positions. These chunks are extrapolation.", tokens,
                                 request.max_positions));
  }
}

/// Lengths at which something else than the context changes, and lengths with few queries.
void add_growth_caveats(Caveats& list, const SweepRun& run) {
  constexpr std::int64_t few_queries = 32;
  const auto& kinds = run.of(analyses::context_by_attention);
  const std::string apart =
      kinds.empty() ? analyses::set_apart_in_words(run.of(analyses::context)) : analyses::set_apart_in_words(kinds);
  if (!apart.empty()) list.push_back(fmt::format("Growth of the evidence is not judged at every length: {}.", apart));
  for (const analyses::ContextPoint& point : run.of(analyses::context).points) {
    const std::int64_t queries = point.length.tokens - runfile::last_quarter_begin(point.length.tokens);
    if (queries < few_queries)
      list.push_back(fmt::format("The last quarter of {} tokens has {}. Means over so few queries are noisy.",
                                 format_count(point.length.tokens),
                                 queries == 1 ? "1 query" : fmt::format("{} queries", queries)));
  }
}

void add_model_caveats(Caveats& list, const SweepRun& run) {
  const runfile::Request& request = run.request();
  if (request.samples < 5)
    list.push_back(fmt::format("Intervals rest on {} a length.", counted(request.samples, "chunk")));
  if (!request.layers.empty() && request.layers.front() != 0)
    list.push_back(
        "The run does not begin at the model's first layer. Deep layers are counted among the layers of the run.");
  if (!request.gated)
    list.push_back("The model has no attention gate: the gate's panel and the comparison with it are left out.");
  if (request.estimator.name != Estimator::reml)
    list.push_back(
        fmt::format("lambda_obs and K are estimated by {}. The paper estimates them by REML, so its numbers "
                    "cannot be compared with these.",
                    words_of(request.estimator)));
  if (!request.ignored_config_keys.empty())
    list.push_back(
        fmt::format("These keys of config.json were not read (--ignore-config-key): {}. If they change what the model "
                    "computes, the numbers are not those of the model.",
                    fmt::join(request.ignored_config_keys, ", ")));
  if (request.filtered)
    list.push_back(
        "The model is a Bayesian filter (BFT). Attention is measured as it acts: log precisions and the recency decay "
        "of "
        "the filter are part of the scores. K is the gain of a token with a precision of 1, as for other models, and "
        "lambda_obs has no bound. Inside the filter both differ.");
  if (request.sink_logits)
    list.push_back(
        "Learned sink logits take part of every query's weight. BOS mass and sink shares are shares of the keys and "
        "the sink together. n_eff, S and K are of the keys alone.");
  if (!run.proof().unproven.empty()) list.push_back(run.proof().unproven);
  const analyses::SinkVsK& sinks = run.of(analyses::sink_vs_k);
  for (const std::string& note : sinks.notes) list.push_back(fmt::format("Sink against K: {}.", note));
  if (sinks.apart.empty()) return;
  std::vector<std::int64_t> layers;
  for (const analyses::LayerApart& layer : sinks.apart) layers.push_back(layer.layer);
  list.push_back(fmt::format("Layers {} are excluded from the sink figures: {}.", number_ranges(layers),
                             sinks.apart.front().reason));
}

Caveats caveats(const SweepRun& run) {
  Caveats list = {
      "A naive p takes heads as independent points, which heads of one layer or one KV group are not. It is shown so "
      "that the paper can be compared, and decides nothing.",
      run.request().estimator.name == Estimator::reml
          ? "BOS mass and K are coupled by arithmetic: a sink forces n_eff towards 1 and S towards 0, and so K towards "
            "2d/(1+2d). K without BOS is the control."
          : "BOS mass and K are coupled by arithmetic: a sink forces n_eff towards 1 and S towards 0, and K depends on "
            "them. K without BOS is the control.",
      "K at lambda = 1 depends on the scale of the values, which is arbitrary: scaling a head's values up and its "
      "output down changes no logit and changes K. Scaled K is the control.",
      "Intervals over chunks say how far another text of the same kind might move a mean of this model, if its chunks "
      "were independent draws of such text. They do not speak of other kinds of text, of another training run of the "
      "same model, or of another model.",
  };
  if (!run.of(analyses::context).paired && run.of(length_facts).size() > 1)
    list.push_back(
        "The chunks are consecutive: a longer length reads text that a shorter one does not. Differences between "
        "lengths are therefore differences between texts too.");
  add_length_caveats(list, run);
  add_growth_caveats(list, run);
  add_model_caveats(list, run);
  return list;
}

/// What is common to every run first, then what only some have.
std::vector<Block> caveats_blocks(Runs runs) {
  const auto everywhere = [&](const std::string& caveat) {
    return std::all_of(runs.begin(), runs.end(), [&](const SweepRun& run) {
      const Caveats& list = run.of(caveats);
      return std::count(list.begin(), list.end(), caveat) > 0;
    });
  };
  std::string html = "<ul>\n";
  for (const std::string& caveat : runs.front().of(caveats)) {
    if (everywhere(caveat)) html += fmt::format("<li>{}</li>\n", to_html(caveat));
  }
  for (const SweepRun& run : runs) {
    for (const std::string& caveat : run.of(caveats)) {
      if (!everywhere(caveat)) html += fmt::format("<li>{}: {}</li>\n", escape_html(run.label()), to_html(caveat));
    }
  }
  return {Html{html + "</ul>\n"}};
}

}  // namespace

const Section<SweepRun> caveats_section = {
    .name = "caveats",
    .title = "Caveats",
    .question = "What must these numbers not be read as?",
    .keys = {"caveats"},
    .blocks = caveats_blocks,
    .add_json = [](const SweepRun& run, OrderedJson& json) { json["caveats"] = run.of(caveats); }};

}  // namespace gainlens::reports
