#include "reports/results.h"

#include "analyses/cells.h"
#include "analyses/statistics.h"
#include "core/quantity.h"
#include "reports/wording.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace gainlens::reports {
namespace {

using analyses::Interval;
using analyses::Length;
using analyses::Maybe;
using analyses::Measured;
using runfile::RunReader;

std::vector<LengthFacts> length_facts(const RunReader& reader) {
  const bool has_nll = reader.has("summary/nll");
  const runfile::Array nll = has_nll ? reader.read("summary/nll") : runfile::Array{};
  std::vector<LengthFacts> facts;
  for (const Length& length : analyses::all_lengths(reader)) {
    std::vector<double> values;
    for (const std::int64_t sample : length.samples) {
      const auto offset = length.index * static_cast<std::size_t>(reader.samples()) + static_cast<std::size_t>(sample);
      if (has_nll && std::isfinite(nll.values.at(offset))) values.push_back(nll.values.at(offset));
    }
    if (values.empty()) {
      const std::string reason = has_nll ? "no chunk of this length has a value" : "the run has no summary/nll";
      facts.push_back({length, Measured::none(reason), Maybe<Interval>::none(reason)});
    } else {
      facts.push_back({length, analyses::mean(values), analyses::mean_interval(values)});
    }
  }
  return facts;
}

std::vector<HeatmapGroup> heatmaps(const RunReader& reader) {
  std::vector<HeatmapGroup> groups;
  for (const analyses::HeatmapQuantity& quantity : analyses::heatmap_quantities()) {
    // K has no scale of its own: the two gains are always shown side by side
    if (quantity.name != "kalman_gain_scaled") groups.push_back({std::string(quantity.name), {}});
    groups.back().maps.push_back(analyses::heatmap(reader, quantity));
  }
  return groups;
}

std::string attention_kinds(const RunReader& reader) {
  std::map<std::string, std::vector<std::int64_t>> layers;
  for (std::size_t i = 0; i < reader.attention().size(); ++i)
    layers[reader.attention()[i]].push_back(reader.layers()[i]);
  std::string text;
  for (const auto& [kind, numbers] : layers)
    text += fmt::format("{}{} in layers {}", text.empty() ? "" : "; ", kind, number_ranges(numbers));
  return text;
}

std::vector<std::pair<std::string, std::string>> policies(const RunReader& reader, const Results& results) {
  const runfile::Request& request = results.request;
  const std::string first_token =
      request.bos
          ? fmt::format("Token {} stands at position 0 of every chunk; BOS mass is the attention weight it gets.",
                        *request.bos)
          : "No BOS token stands before the chunks: what is called BOS mass is the weight of each chunk's first text "
            "token.";
  return {
      {"bos", request.bos_policy},
      {"key_0", first_token},
      {"windows",
       "Last quarter: queries t >= ceil(3T/4). Second half: queries t >= ceil(T/2). n_eff, gate, S, lambda_obs, K and "
       "entropy are means "
       "over "
       "the last quarter, BOS mass and K without key 0 over the second half."},
      {"deep_layers", fmt::format("Layers {} (of {} in this run).", number_ranges(results.context.deep_layers),
                                  request.layers.size())},
      {"attention", attention_kinds(reader)},
      {"prior_precision",
       "K = lambda_obs / (lambda + lambda_obs) with lambda = 1 in every layer, except in the gain theory, where one "
       "lambda is fitted."},
      {"observation_precision",
       "The context figure shows the mean of lambda_obs over queries. The gain theory uses lambda* = (n_eff + nu) / (S "
       "+ nu sigma0^2) of "
       "the aggregated n_eff and S, which is another number."},
      {"prior", fmt::format("nu = 1, sigma0^2 = 1/d = 1/{}.", request.head_dim)},
      {"scaled_gain",
       "Scaled K: the values of each KV head and dimension divided by their standard deviation over the chunk, "
       "sigma0^2 = 1."},
      {"sink_lengths",
       fmt::format("{} ({}).", analyses::list_lengths(results.sink_vs_k.lengths), results.sink_vs_k.lengths_rule)},
      {"chunks", results.context.sharing},
      {"neighbouring_chunks", results.neighbours.finding},
      {"spread",
       "A standard deviation (a band, in figures of one run) is the population one over chunk, layer, head and query. "
       "Intervals are 95% "
       "Student intervals of the mean over chunks; of a correlation over heads, of Fisher's z with one layer or one "
       "stretch of text left "
       "out "
       "at a time."},
  };
}

void add_data_caveats(std::vector<std::string>& caveats, const Results& results) {
  const runfile::Request& request = results.request;
  for (const LengthFacts& facts : results.lengths) {
    const std::string tokens = format_count(facts.length.tokens);
    if (facts.length.samples.empty()) {
      caveats.push_back(
          fmt::format("No chunk of {} tokens is complete: this length is left out of every figure.", tokens));
    } else if (facts.length.missing > 0) {
      caveats.push_back(fmt::format("{} of {} chunks of {} tokens are missing and left out.", facts.length.missing,
                                    request.samples, tokens));
    }
    if (request.max_positions > 0 && facts.length.tokens > request.max_positions) {
      caveats.push_back(fmt::format("{} tokens exceed the model's {} positions: these chunks are extrapolation.",
                                    tokens, request.max_positions));
    }
  }
  if (request.samples < 5) {
    caveats.push_back(fmt::format("Intervals rest on {} a length.", counted(request.samples, "chunk")));
  }
  if (!request.layers.empty() && request.layers.front() != 0) {
    caveats.push_back(
        "The run does not begin at the model's first layer: deep layers are counted among the layers of the run.");
  }
  if (!request.gated)
    caveats.push_back("The model has no attention gate: the gate's panel and the comparison with it are left out.");
  if (request.sink_logits) {
    caveats.push_back(
        "Learned sink logits take part of every query's weight: BOS mass and sink shares are of keys and sink "
        "together, n_eff, S and K of "
        "the "
        "keys alone.");
  }
  if (!results.proof.gap.empty()) caveats.push_back(results.proof.gap);
  for (const std::string& note : results.sink_vs_k.notes) caveats.push_back(fmt::format("Sink against K: {}.", note));
  if (!results.sink_vs_k.apart.empty()) {
    std::vector<std::int64_t> layers;
    for (const analyses::LayerApart& layer : results.sink_vs_k.apart) layers.push_back(layer.layer);
    caveats.push_back(
        fmt::format("Layers {} are set apart in the sink figures: {}, so that their BOS mass is 0 by construction.",
                    number_ranges(layers), results.sink_vs_k.apart.front().reason));
  }
}

std::vector<std::string> caveats(const Results& results) {
  std::vector<std::string> list = {
      "A naive p takes heads as independent points, which heads of one layer or one KV group are not: it is shown so "
      "that the paper can be "
      "compared, and decides nothing.",
      "BOS mass and K are coupled by arithmetic: a sink forces n_eff towards 1 and S towards 0, and so K towards "
      "2d/(1+2d). K without key "
      "0 is the control.",
      "K at lambda = 1 has no scale of its own: scaling a head's values up and its output down changes no logit and "
      "changes K. Scaled K is "
      "the control.",
      "Intervals over chunks say how far another text of the same kind might move a mean of this model, were its "
      "chunks independent draws "
      "of "
      "such text. They do not speak of other kinds of text, of another training run of the same model, or of another "
      "model.",
  };
  if (!results.context.paired && results.lengths.size() > 1) {
    list.push_back(
        "The chunks are consecutive: a longer length reads text that a shorter one does not, so that differences "
        "between lengths are "
        "differences between texts too.");
  }
  add_data_caveats(list, results);
  return list;
}

OrderedJson run_facts(const Results& results) {
  const runfile::Request& request = results.request;
  OrderedJson json;
  json["family"] = request.family;
  json["model_sha256"] = request.model;
  json["tokenizer"] = request.tokenizer;
  json["text_sha256"] = request.text;
  json["layers"] = request.layers;
  json["heads"] = request.heads;
  json["kv_heads"] = request.kv_heads;
  json["head_dim"] = request.head_dim;
  json["attention"] = request.attention;
  json["gated"] = request.gated;
  json["sink_logits"] = request.sink_logits;
  json["samples"] = request.samples;
  json["nested"] = request.nested;
  json["spread_over_tokens"] = request.spread ? OrderedJson(*request.spread) : OrderedJson(nullptr);
  if (!request.spread) json["spread_over_tokens_reason"] = "chunks are consecutive, from the head of the text on";
  json["bos"] = request.bos ? OrderedJson(*request.bos) : OrderedJson(nullptr);
  if (!request.bos) json["bos_reason"] = "no token is put before the chunks";
  json["dtype"] = request.dtype;
  json["device"] = request.device;
  json["threads"] = request.threads;
  return json;
}

OrderedJson lengths_json(const std::vector<LengthFacts>& lengths) {
  OrderedJson json = OrderedJson::array();
  for (const LengthFacts& facts : lengths) {
    OrderedJson entry;
    entry["tokens"] = facts.length.tokens;
    entry["label"] = format_count(facts.length.tokens);
    entry["chunks"] = facts.length.samples.size();
    entry["chunks_missing"] = facts.length.missing;
    put(entry, "nll", facts.nll);
    if (facts.nll) put(entry, "nll_interval", facts.nll_interval);
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace

Results analyse(const RunInput& run, const analyses::Options& options) {
  const RunReader& reader = run.reader;
  Results results{.label = run.label,
                  .request = reader.request(),
                  .proof = run.proof,
                  .lengths = length_facts(reader),
                  .policies = {},
                  .context = analyses::context(reader, options),
                  .context_by_attention = analyses::context_by_attention(reader, options),
                  .neighbours = analyses::neighbours(reader, options),
                  .gain_theory = analyses::gain_theory(reader, options),
                  .sink_vs_k = analyses::sink_vs_k(reader, options),
                  .sinks = analyses::sinks(reader, options),
                  .heatmaps = heatmaps(reader),
                  .value_norms = analyses::value_norms(reader),
                  .verdicts = {},
                  .audit = analyses::audit(reader, options),
                  .caveats = {}};
  results.verdicts = analyses::verdicts(results.context, results.gain_theory, results.sink_vs_k);
  results.policies = policies(reader, results);
  results.caveats = caveats(results);
  return results;
}

OrderedJson summary(const Results& results) {
  OrderedJson json;
  json["run"] = run_facts(results);
  json["policies"] = OrderedJson::object();
  for (const auto& [key, sentence] : results.policies) json["policies"][key] = sentence;
  json["lengths"] = lengths_json(results.lengths);
  json["verdicts"] = to_json(results.verdicts);
  json["context"] = to_json(results.context);
  if (!results.context_by_attention.empty()) {
    json["context_by_attention"] = OrderedJson::object();
    for (const auto& [attention, context] : results.context_by_attention) {
      OrderedJson entry = to_json(context);
      entry.erase("deep_layers");  // it is all layers of the kind
      entry["layers"] = context.deep_layers;
      json["context_by_attention"][attention] = std::move(entry);
    }
  }
  json["neighbouring_chunks"] = to_json(results.neighbours);
  json["gain_theory"] = to_json(results.gain_theory);
  json["sink_vs_k"] = to_json(results.sink_vs_k);
  if (results.sinks) {
    json["sinks"] = to_json(*results.sinks);
  } else {
    json["sinks"] = nullptr;
    json["sinks_reason"] = results.sinks.reason();
  }
  json["audit"] = to_json(results.audit);
  json["caveats"] = results.caveats;
  return json;
}

OrderedJson summary(const Report& report) {
  if (report.runs.size() == 1) return summary(report.runs.front());
  OrderedJson json;
  json["runs"] = OrderedJson::object();
  for (const Results& run : report.runs) json["runs"][run.label] = summary(run);
  json["comparisons"] = OrderedJson::array();
  for (const Contrast& contrast : report.contrasts) {
    OrderedJson entry = {{"first", contrast.first}, {"second", contrast.second}};
    entry.update(to_json(contrast.comparison));
    json["comparisons"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace gainlens::reports
