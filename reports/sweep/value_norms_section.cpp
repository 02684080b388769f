#include "reports/sweep/sections.h"

#include "analyses/value_norms.h"
#include "core/quantity.h"
#include "reports/sweep/run_words.h"
#include "reports/sweep/value_norms_figure.h"

#include <algorithm>

namespace gainlens::reports {
namespace {

CsvTable norms_csv(const analyses::ValueNormsResult& result) {
  CsvTable table{"value-norms", {"layer", "kv_head"}, {}};
  for (std::size_t key = 0; key < result.heads.front().first.size(); ++key)
    table.header.push_back(fmt::format("key_{}", key));
  table.header.emplace_back("later_keys");
  for (const analyses::ValueNorms& head : result.heads) {
    std::vector<Cell> row = {head.layer, head.kv_head};
    for (const double norm : head.first) row.emplace_back(norm);
    row.emplace_back(head.rest);
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string norm_tokens(const SweepRun& run) {
  return run.of(value_norms_of) ? format_count(run.of(value_norms_of)->length.tokens) : "no";
}

std::string norm_numbers(const SweepRun& run) {
  if (!run.of(value_norms_of)) return fmt::format("left out: {}.", run.of(value_norms_of).reason());
  double sum = 0, heads = 0;
  for (const analyses::ValueNorms& head : run.of(value_norms_of)->heads) {
    if (!(head.rest > 0)) continue;
    sum += head.first[0] / head.rest;
    heads += 1;
  }
  if (heads == 0) return "every value beyond the first keys is zero.";
  return fmt::format(
      "on average over layers and KV heads the value of BOS is {:.2f} times as long as that of a key beyond the "
      "first eight.",
      sum / heads);
}

Caption value_norms_caption(Runs runs) {
  const auto drawn =
      std::find_if(runs.begin(), runs.end(), [](const SweepRun& run) { return bool(run.of(value_norms_of)); });
  if (drawn == runs.end()) return {};
  return {fmt::format("Euclidean norms of value vectors at the longest context ({} tokens), means over chunks{}.{} {}",
                      runs_said(runs, norm_tokens),
                      runs.size() > 1 ? " and KV heads" : "; in (b) one point a KV head, coloured by layer",
                      overlay_sentence(runs), sentences_of(runs, norm_numbers)),
          "Whether the value that a sink attends to is short, which the sink-necessity lemma asks for.",
          "A short value of BOS does not show that a head preserves its state by it: that takes the attention it gets, "
          "which the audit sets against the bound."};
}

std::vector<Block> value_norms_blocks(Runs runs) {
  return {CaptionedFigure{"value-norms", "Value norms of the first keys", value_norms_caption(runs),
                          value_norms_figure(runs)}};
}

void add_value_norms_json(const SweepRun& run, OrderedJson& summary) {
  const auto& norms = run.of(value_norms_of);
  if (norms) {
    summary["value_norms"] = to_json(*norms);
  } else {
    summary["value_norms"] = nullptr;
    summary["value_norms_reason"] = norms.reason();
  }
}

std::vector<CsvTable> value_norms_tables(const SweepRun& run) {
  if (const auto& norms = run.of(value_norms_of)) return {norms_csv(*norms)};
  return {};
}

}  // namespace

Maybe<analyses::ValueNormsResult> value_norms_of(const SweepRun& run) {
  return analyses::value_norms(run.reader());
}

const Section<SweepRun> value_norms_section = {.name = "value-norms",
                                               .title = "Values of the first keys",
                                               .question = "Are the values of the first keys small?",
                                               .files = {"value-norms"},
                                               .keys = {"value_norms"},
                                               .blocks = value_norms_blocks,
                                               .add_json = add_value_norms_json,
                                               .tables = value_norms_tables};

}  // namespace gainlens::reports
