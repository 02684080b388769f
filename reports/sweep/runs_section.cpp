#include "reports/sweep/sections.h"

#include "analyses/context.h"
#include "analyses/statistics.h"
#include "core/quantity.h"
#include "reports/page/typography.h"
#include "reports/sweep/run_words.h"
#include "reports/words/numbers.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

namespace gainlens::reports {
namespace {

using Row = std::vector<std::string>;

std::string yes_or_no(bool value) {
  return value ? "yes" : "no";
}

std::string chunking(const SweepRun& run) {
  const runfile::Request& request = run.request();
  const std::string placed = request.spread ? "spread over the text" : "consecutive text";
  return request.nested ? placed + ", shorter ones nested in the longest" : placed;
}

std::string attention_of(const SweepRun& run) {
  std::map<std::string, std::size_t> kinds;
  for (const std::string& kind : run.request().attention) ++kinds[kind];
  std::string text;
  for (const auto& [kind, count] : kinds)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", kind, counted(count, "layer"));
  return text;
}

std::string lengths_of(const SweepRun& run) {
  std::vector<analyses::Length> lengths;
  for (const LengthFacts& facts : run.of(length_facts)) lengths.push_back(facts.length);
  return analyses::list_lengths(lengths);
}

std::string chunks_of(const SweepRun& run) {
  std::size_t complete = 0;
  const auto& lengths = run.of(length_facts);
  for (const LengthFacts& facts : lengths) complete += facts.length.samples.size();
  return fmt::format("{} of {}", complete, lengths.size() * static_cast<std::size_t>(run.request().samples));
}

std::string tokens_measured(const SweepRun& run) {
  std::int64_t tokens = 0;
  for (const LengthFacts& facts : run.of(length_facts))
    tokens += facts.length.tokens * static_cast<std::int64_t>(facts.length.samples.size());
  return std::to_string(tokens);
}

std::string nll_of(const SweepRun& run) {
  const LengthFacts& longest = run.of(length_facts).back();
  return longest.nll ? with_interval(shown(longest.nll), longest.nll_interval) : "–";
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "–" : text;
}

PaperTable runs_table(Runs runs) {
  PaperTable table{"runs", "What was run. Checksums are the first twelve digits of sha256.", {{"", true}}, {}};
  for (const SweepRun& run : runs) table.columns.push_back({runs.size() > 1 ? run.label() : "this run", true});
  const auto add = [&](const char* what, const std::function<std::string(const SweepRun&)>& value) {
    Row row = {what};
    for (const SweepRun& run : runs) row.push_back(value(run));
    table.rows.push_back(std::move(row));
  };
  add("model", [](const SweepRun& run) { return or_dash(run.of(last_start).model); });
  add("text", [](const SweepRun& run) { return or_dash(run.of(last_start).text); });
  add("swept on", [](const SweepRun& run) { return or_dash(run.of(last_start).time); });
  add("gainlens", [](const SweepRun& run) {
    const std::string& version = run.of(last_start).version;
    return fmt::format("{}statistics version {}", version.empty() ? "" : version + ", ", run.request().version);
  });
  add("model family", [](const SweepRun& run) { return run.request().family; });
  add("weights", [](const SweepRun& run) { return or_dash(weights_digest(run)); });
  add("layers × heads", [](const SweepRun& run) {
    return fmt::format("{} × {} ({})", run.request().layers.size(), run.request().heads,
                       runfile::kv_heads_in_words(run.request()));
  });
  add("head dimension", [](const SweepRun& run) { return std::to_string(run.request().head_dim); });
  add("attention", attention_of);
  add("attention gate", [](const SweepRun& run) { return yes_or_no(run.request().gated); });
  add("estimator of lambda_obs", [](const SweepRun& run) { return words_of(run.request().estimator); });
  add("text checksum", [](const SweepRun& run) { return short_digest(run.request().text); });
  add("tokenizer", [](const SweepRun& run) { return short_digest(run.request().tokenizer); });
  add("BOS policy", [](const SweepRun& run) { return run.request().bos_policy; });
  add("context lengths (tokens)", lengths_of);
  add("chunks, complete", chunks_of);
  add("tokens measured", tokens_measured);
  add("chunking", chunking);
  add("NLL at the longest (nats per token)", nll_of);
  add("dtype, device",
      [](const SweepRun& run) { return fmt::format("{}, {}", run.request().dtype, run.request().device); });
  add("shards proven by sha256", [](const SweepRun& run) { return std::to_string(run.proof().shards); });
  return table;
}

OrderedJson run_facts(const SweepRun& run) {
  const runfile::Request& request = run.request();
  OrderedJson json;
  json["family"] = request.family;
  json["model_sha256"] = request.model;
  json["tokenizer"] = request.tokenizer;
  json["text_sha256"] = request.text;
  json["layers"] = request.layers;
  json["heads"] = request.heads;
  json["kv_heads"] = request.kv_heads;
  if (!request.layer_kv_heads.empty()) json["layer_kv_heads"] = request.layer_kv_heads;
  json["head_dim"] = request.head_dim;
  json["attention"] = request.attention;
  json["gated"] = request.gated;
  json["sink_logits"] = request.sink_logits;
  json["filtered"] = request.filtered;
  json["samples"] = request.samples;
  json["nested"] = request.nested;
  json["spread_over_tokens"] = request.spread ? OrderedJson(*request.spread) : OrderedJson(nullptr);
  if (!request.spread) json["spread_over_tokens_reason"] = "chunks are consecutive, from the head of the text on";
  json["bos"] = request.bos ? OrderedJson(*request.bos) : OrderedJson(nullptr);
  if (!request.bos) json["bos_reason"] = "no token is put before the chunks";
  json["dtype"] = request.dtype;
  json["device"] = request.device;
  json["threads"] = request.threads;
  json["estimator"] = words_of(request.estimator);
  json["statistics_version"] = request.version;
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

void add_runs_json(const SweepRun& run, OrderedJson& summary) {
  summary["run"] = run_facts(run);
  summary["lengths"] = lengths_json(run.of(length_facts));
}

std::vector<CsvTable> runs_tables(const SweepRun& run) {
  CsvTable table{"lengths", {"tokens", "chunks", "chunks_missing", "nll", "nll_low", "nll_high"}, {}};
  for (const LengthFacts& facts : run.of(length_facts)) {
    std::vector<Cell> row = {facts.length.tokens, cell(facts.length.samples.size()), facts.length.missing,
                             cell(facts.nll)};
    append(row, facts.nll_interval);
    table.rows.push_back(std::move(row));
  }
  return {table};
}

}  // namespace

std::vector<LengthFacts> length_facts(const SweepRun& run) {
  const runfile::RunReader& reader = run.reader();
  const bool has_nll = reader.has("summary/nll");
  const runfile::Array nll = has_nll ? reader.read("summary/nll") : runfile::Array{};
  std::vector<LengthFacts> facts;
  for (const analyses::Length& length : analyses::all_lengths(reader)) {
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

std::vector<std::int64_t> drawn_lengths(Runs runs) {
  std::set<std::int64_t> tokens;
  for (const SweepRun& run : runs) {
    for (const analyses::ContextPoint& point : run.of(analyses::context).points) tokens.insert(point.length.tokens);
  }
  return {tokens.begin(), tokens.end()};
}

const Section<SweepRun> runs_section = {.name = "runs",
                                        .title = "What was run",
                                        .question = "Which model, which text, which lengths, with what?",
                                        .files = {"runs", "lengths"},
                                        .keys = {"run", "lengths"},
                                        .blocks = [](Runs runs) { return std::vector<Block>{runs_table(runs)}; },
                                        .add_json = add_runs_json,
                                        .tables = runs_tables};

}  // namespace gainlens::reports
