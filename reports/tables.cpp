#include "reports/tables.h"

#include <cmath>
#include <limits>

namespace gainlens::reports {
namespace {

using analyses::Aggregate;
using analyses::Interval;
using analyses::Maybe;
using analyses::Measured;

constexpr double empty = std::numeric_limits<double>::quiet_NaN();

Cell cell(const Measured& value) {
  return value ? *value : empty;
}
Cell mean_cell(const Maybe<Aggregate>& value) {
  return value ? value->mean : empty;
}
Cell count(std::size_t value) {
  return static_cast<std::int64_t>(value);
}

void append(std::vector<Cell>& row, const Maybe<Interval>& interval) {
  row.emplace_back(interval ? interval->low : empty);
  row.emplace_back(interval ? interval->high : empty);
}

void append(std::vector<Cell>& row, const Maybe<Aggregate>& aggregate) {
  row.push_back(mean_cell(aggregate));
  row.push_back(aggregate ? cell(aggregate->deviation) : Cell(empty));
  append(row, aggregate ? aggregate->interval : Maybe<Interval>::none(aggregate.reason()));
}

void append(std::vector<Cell>& row, const analyses::Change& change) {
  row.push_back(cell(change.mean));
  append(row, change.interval);
}

Table context_table(const analyses::Context& context) {
  Table table{"context", {"tokens", "chunks"}, {}};
  for (const char* name : {"n_eff", "gate", "observation_precision"}) {
    for (const char* part : {"", "_deviation", "_low", "_high"})
      table.header.push_back(fmt::format("{}{}", name, part));
  }
  for (const char* part : {"", "_low", "_high"})
    table.header.push_back(fmt::format("observation_precision_ratio{}", part));
  for (const char* name :
       {"logit_gate_change", "log_observation_precision_change", "logit_gate_less_log_precision_change"}) {
    for (const char* part : {"", "_low", "_high"}) table.header.push_back(fmt::format("{}{}", name, part));
  }
  for (const analyses::ContextPoint& point : context.points) {
    std::vector<Cell> row = {point.length.tokens, count(point.length.samples.size())};
    append(row, point.n_eff);
    append(row, point.gate);
    append(row, point.observation_precision);
    row.push_back(cell(point.precision_ratio));
    append(row, point.precision_ratio_interval);
    append(row, point.logit_gate);
    append(row, point.log_precision);
    append(row, point.difference);
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table gain_theory_table(const analyses::GainTheory& theory) {
  Table table{"gain-theory",
              {"tokens", "n_eff", "residual", "aggregated_precision", "observation_precision", "kalman_gain",
               "kalman_gain_scaled", "predicted_gain", "relative_error", "constant_error", "skill"},
              {}};
  for (const analyses::GainTheoryPoint& point : theory.points) {
    table.rows.push_back({point.length.tokens, mean_cell(point.n_eff), mean_cell(point.residual),
                          cell(point.aggregated_precision), mean_cell(point.observation_precision),
                          mean_cell(point.kalman_gain), mean_cell(point.kalman_gain_scaled), cell(point.predicted_gain),
                          cell(point.relative_error), cell(point.constant_error), cell(point.skill)});
  }
  return table;
}

/// The test of the formula's error on unseen text, length by length.
Table theory_test_table(const analyses::TheoryEquivalence& test) {
  Table table{"gain-theory-unseen",
              {"tokens", "chunks", "margin", "error", "error_low_90", "error_high_90", "within_margin_p",
               "beyond_margin_p", "constant_error"},
              {}};
  for (const analyses::TheoryError& length : test.lengths) {
    table.rows.push_back({length.tokens, test.chunks, test.margin, length.error, length.interval.low,
                          length.interval.high, cell(length.log_ratio.p), cell(length.log_ratio.exceeds_p),
                          length.constant_error});
  }
  return table;
}

Table points_table(const analyses::SinkVsK& result) {
  Table table{"sink-vs-k", {"layer", "head", "attention", "set_apart", "bos_mass"}, {}};
  for (const analyses::GainVariant& variant : analyses::gain_variants) table.header.emplace_back(variant.name);
  for (const analyses::SinkPoint& point : result.points) {
    std::vector<Cell> row = {point.layer, point.head, point.attention, std::int64_t{point.set_apart}, point.bos_mass};
    for (const double gain : point.gain) row.emplace_back(gain);
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table heatmap_table(const analyses::Heatmap& map) {
  Table table{fmt::format("heatmap-{}", map.quantity.name), {"layer", "head", std::string(map.quantity.name)}, {}};
  for (std::size_t layer = 0; layer < map.layers.size(); ++layer) {
    for (std::size_t head = 0; head < map.heads; ++head)
      table.rows.push_back({map.layers[layer], count(head), map.at(layer, head)});
  }
  return table;
}

Table value_norms_table(const analyses::ValueNormsResult& result) {
  Table table{"value-norms", {"layer", "kv_head"}, {}};
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

/// p of the permutation tests, intervals from leaving out layers and text, and the decision they lead to.
void append(std::vector<Cell>& row, const analyses::SinkInference* inference) {
  if (inference == nullptr) {
    row.insert(row.end(), 9, empty);
    row.emplace_back(std::string());
    return;
  }
  row.push_back(cell(inference->blocks.pearson.p));
  row.push_back(cell(inference->blocks.pearson.null_mean));
  row.emplace_back(inference->blocks.arrangements);
  row.push_back(cell(inference->shift.pearson.p));
  row.push_back(cell(inference->shift.pearson.null_mean));
  for (const auto* left_out : {&inference->layers, &inference->text}) {
    append(row, *left_out ? (*left_out)->pearson : Maybe<Interval>::none(left_out->reason()));
  }
  row.emplace_back(inference->decision.verdict);
}

/// @param inference  of pooled heads; null for a part of them
void append(Table& table, std::string_view gain, const std::string& group, const analyses::Correlation& c,
            const analyses::SinkInference* inference) {
  std::vector<Cell> row = {
      std::string(gain),       group, count(c.points), cell(c.pearson), cell(c.pearson_naive_p), cell(c.spearman),
      cell(c.spearman_naive_p)};
  append(row, inference);
  table.rows.push_back(std::move(row));
}

Table lemma_table(const analyses::SinkLemma& lemma) {
  Table table{"sink-lemma",
              {"layer", "head", "attention", "set_apart", "first_norm", "min_norm", "alignment", "estimate_norm",
               "bound", "bos_mass", "slack", "slack_min", "vacuous", "gained_norm", "gain_bound", "gain_violated"},
              {}};
  for (const analyses::LemmaHead& head : lemma.heads) {
    table.rows.push_back({head.layer, head.head, head.attention, std::int64_t{head.set_apart}, head.first_norm,
                          head.min_norm, head.alignment, head.estimate_norm, head.bound, head.bos_mass,
                          cell(head.slack), head.slack_min, head.vacuous, head.gained_norm, head.gain_bound,
                          head.gain_violated});
  }
  return table;
}

std::string csv_field(const Cell& cell) {
  if (const auto* number = std::get_if<double>(&cell)) return std::isfinite(*number) ? fmt::format("{}", *number) : "";
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *integer);
  const std::string& text = std::get<std::string>(cell);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

Table sinks_table(const analyses::Sinks& sinks) {
  Table table{"sinks",
              {"layer", "head", "attention", "bos_mass", "kalman_gain", "kalman_gain_scaled", "n_eff", "entropy",
               "without_first_kalman_gain", "sink_share"},
              {}};
  for (const analyses::SinkHead& head : sinks.heads) {
    table.rows.push_back({head.layer, head.head, head.attention, head.bos_mass, cell(head.kalman_gain),
                          cell(head.kalman_gain_scaled), cell(head.n_eff), cell(head.entropy),
                          cell(head.without_first_kalman_gain), cell(head.sink_share)});
  }
  return table;
}

Table correlations_table(const analyses::SinkVsK& result) {
  Table table{"sink-vs-k-correlations",
              {"gain", "heads", "points", "pearson", "pearson_naive_p", "spearman", "spearman_naive_p",
               "block_permutation_p", "block_null_mean", "block_arrangements", "circular_shift_p",
               "circular_shift_null_mean", "layers_low", "layers_high", "text_low", "text_high", "decision"},
              {}};
  for (std::size_t v = 0; v < analyses::gain_variants.size(); ++v) {
    const auto& correlation = result.correlations[v];
    if (!correlation) continue;
    const std::string_view gain = analyses::gain_variants[v].meaning;
    append(table, gain, "pooled", correlation->pooled, &correlation->inference);
    for (const auto& [kind, c] : correlation->within_attention_type) append(table, gain, kind, c, nullptr);
    append(table, gain, "within layers", correlation->within_layers, nullptr);
  }
  return table;
}

Table lengths_table(const std::vector<LengthFacts>& lengths) {
  Table table{"lengths", {"tokens", "chunks", "chunks_missing", "nll", "nll_low", "nll_high"}, {}};
  for (const LengthFacts& facts : lengths) {
    std::vector<Cell> row = {facts.length.tokens, count(facts.length.samples.size()), facts.length.missing,
                             cell(facts.nll)};
    append(row, facts.nll_interval);
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

Table differences_table(const std::vector<Contrast>& contrasts) {
  Table table{"differences",
              {"first", "second", "tokens", "quantity", "unit", "first_mean", "second_mean", "difference", "low",
               "high", "pairs"},
              {}};
  for (const Contrast& contrast : contrasts) {
    for (const analyses::ComparedLength& length : contrast.comparison.lengths) {
      for (const analyses::PairedDifference& quantity : length.quantities) {
        std::vector<Cell> row = {contrast.first,
                                 contrast.second,
                                 length.tokens,
                                 std::string(quantity.quantity.name),
                                 std::string(quantity.quantity.unit),
                                 cell(quantity.first),
                                 cell(quantity.second),
                                 cell(quantity.difference)};
        append(row, quantity.interval);
        row.push_back(count(quantity.pairs));
        table.rows.push_back(std::move(row));
      }
    }
  }
  return table;
}

std::vector<Table> tables(const Results& results) {
  std::vector<Table> all = {lengths_table(results.lengths), context_table(results.context),
                            gain_theory_table(results.gain_theory), points_table(results.sink_vs_k),
                            correlations_table(results.sink_vs_k)};
  if (results.gain_theory.unseen) all.push_back(theory_test_table(*results.gain_theory.unseen));
  if (results.sinks) all.push_back(sinks_table(*results.sinks));
  for (const HeatmapGroup& group : results.heatmaps) {
    for (const auto& map : group.maps) {
      if (map) all.push_back(heatmap_table(*map));
    }
  }
  if (results.value_norms) all.push_back(value_norms_table(*results.value_norms));
  if (results.audit.lemma) all.push_back(lemma_table(*results.audit.lemma));
  return all;
}

std::string to_csv(const Table& table) {
  std::vector<std::vector<Cell>> lines = {{table.header.begin(), table.header.end()}};
  lines.insert(lines.end(), table.rows.begin(), table.rows.end());
  std::string text;
  for (const std::vector<Cell>& line : lines) {
    ASSERT(line.size() == table.header.size(), "{}: {} cells under {} headings", table.name, line.size(),
           table.header.size());
    for (std::size_t i = 0; i < line.size(); ++i) text += (i == 0 ? "" : ",") + csv_field(line[i]);
    text += '\n';
  }
  return text;
}

}  // namespace gainlens::reports
