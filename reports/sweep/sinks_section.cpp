#include "reports/sweep/sections.h"

#include "analyses/published_sinks.h"
#include "analyses/sink_vs_k.h"
#include "analyses/sinks.h"
#include "reports/page/typography.h"
#include "reports/sweep/run_words.h"
#include "reports/sweep/sink_vs_k_figure.h"
#include "reports/words/numbers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace gainlens::reports {
namespace {

CsvTable points_csv(const analyses::SinkVsK& result) {
  CsvTable table{"sink-vs-k", {"layer", "head", "attention", "set_apart", "bos_mass"}, {}};
  for (const analyses::GainVariant& variant : analyses::gain_variants) table.header.emplace_back(variant.name);
  for (const analyses::SinkPoint& point : result.points) {
    std::vector<Cell> row = {point.layer, point.head, point.attention, std::int64_t{point.set_apart}, point.bos_mass};
    for (const double gain : point.gain) row.emplace_back(gain);
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// p of the permutation tests, intervals from leaving out layers and text, and the decision they lead to.
void append_inference(std::vector<Cell>& row, const analyses::SinkInference* inference) {
  if (inference == nullptr) {
    row.insert(row.end(), 9, empty_cell());
    row.emplace_back(std::string());
    return;
  }
  row.push_back(cell(inference->blocks.pearson.p));
  row.push_back(cell(inference->blocks.pearson.null_mean));
  row.emplace_back(inference->blocks.arrangements);
  row.push_back(cell(inference->shift.pearson.p));
  row.push_back(cell(inference->shift.pearson.null_mean));
  const auto add = [&](const auto& left_out) {
    append(row, left_out ? left_out->pearson : Maybe<Interval>::none(left_out.reason()));
  };
  add(inference->layers);
  add(inference->text);
  row.emplace_back(inference->decision.verdict);
}

/// @param inference  of pooled heads; null for a part of them
void append_correlation(CsvTable& table, std::string_view gain, const std::string& group,
                        const analyses::Correlation& c, const analyses::SinkInference* inference) {
  std::vector<Cell> row = {
      std::string(gain),       group, cell(c.points), cell(c.pearson), cell(c.pearson_naive_p), cell(c.spearman),
      cell(c.spearman_naive_p)};
  append_inference(row, inference);
  table.rows.push_back(std::move(row));
}

CsvTable correlations_csv(const analyses::SinkVsK& result) {
  CsvTable table{
      "sink-vs-k-correlations",
      {"gain", "heads", "points", "pearson", "pearson_naive_p", "spearman", "spearman_naive_p", "block_permutation_p",
       "block_null_mean", "block_arrangements", "circular_shift_p", "circular_shift_null_mean", "layers_range_low",
       "layers_range_high", "text_low", "text_high", "decision"},
      {}};
  for (std::size_t v = 0; v < analyses::gain_variants.size(); ++v) {
    const auto& correlation = result.correlations[v];
    if (!correlation) continue;
    const std::string_view gain = analyses::gain_variants[v].meaning;
    append_correlation(table, gain, "pooled", correlation->pooled, &correlation->inference);
    for (const auto& [kind, c] : correlation->within_attention_type) append_correlation(table, gain, kind, c, nullptr);
    append_correlation(table, gain, "within layers", correlation->within_layers, nullptr);
  }
  return table;
}

CsvTable sinks_csv(const analyses::Sinks& sinks) {
  CsvTable table{"sinks",
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

std::string permutation(const analyses::PermutationTest& test) {
  if (!test.pearson.p) return "–";
  return shown_p(test.pearson.p);
}

/// The ends for pooled heads: an interval without a text, a range without a layer.
template <typename LeftOut>
std::string left_out(const Maybe<LeftOut>& result) {
  if (!result) return "–";
  const auto& interval = result->pearson;
  return interval ? fmt::format("[{:+.2f}, {:+.2f}]", interval->low, interval->high) : "–";
}

/// Why tests and intervals are missing, each reason once; empty if none is.
std::string refusals(const analyses::SinkVsK& sinks) {
  std::vector<std::string> reasons;
  const auto add = [&](std::string_view test, const std::string& reason) {
    const std::string sentence = fmt::format("{} {}", test, reason);
    if (!reason.empty() && std::find(reasons.begin(), reasons.end(), sentence) == reasons.end())
      reasons.push_back(sentence);
  };
  for (const auto& correlation : sinks.correlations) {
    if (!correlation) continue;
    const analyses::SinkInference& inference = correlation->inference;
    add("Block permutation", inference.blocks.pearson.p ? "" : inference.blocks.pearson.p.reason());
    add("Circular shift", inference.shift.pearson.p ? "" : inference.shift.pearson.p.reason());
    add("Leaving out layers", inference.layers ? "" : inference.layers.reason());
    add("Leaving out text", inference.text ? inference.text->pearson.reason() : inference.text.reason());
  }
  return reasons.empty() ? "" : fmt::format(" {}.", fmt::join(reasons, "; "));
}

std::string resampling_of(const analyses::SinkVsK& sinks) {
  for (const auto& correlation : sinks.correlations) {
    if (!correlation) continue;
    const analyses::PermutationTest& blocks = correlation->inference.blocks;
    return fmt::format("Block permutation: {} distinct, {} {}, seed {}.",
                       analyses::count_arrangements(blocks.arrangements), blocks.resamples,
                       blocks.exact ? "tried (all)" : "drawn", blocks.seed);
  }
  return {};
}

PaperTable inference_table(Runs runs) {
  PaperTable table{
      "sink-vs-k-inference",
      fmt::format("BOS mass against K over heads: Pearson's r, its naive p (heads taken as independent) and the "
                  "inference that does not take them so. The block permutation exchanges KV groups within layers, the "
                  "circular shift moves layers and decides nothing, because a common drift with depth looks like a "
                  "relation to it; what r is by chance alone, where that is not 0, follows it, and p is of the "
                  "difference. Without a layer: the range of r with one layer left out, which has no level. Without a "
                  "text: the 95% interval from leaving out one stretch of text at a time. {}",
                  each_run_said(runs,
                                [](const SweepRun& run) {
                                  return resampling_of(run.of(analyses::sink_vs_k)) +
                                         refusals(run.of(analyses::sink_vs_k));
                                })),
      {{"K of", true},
       {"heads"},
       {"r pooled"},
       {"naive p"},
       {"shift p"},
       {"without a layer (range)"},
       {"without a text (95%)"},
       {"r within"},
       {"naive p"},
       {"block p"},
       {"decision"}},
      {}};
  const auto r = [](const Measured& value, const Measured& by_chance) {
    if (!value) return std::string("–");
    const bool shifted = by_chance && std::abs(*by_chance) >= 0.005;
    return fmt::format("{:+.2f}{}", *value, shifted ? fmt::format(" ({:+.2f} by chance)", *by_chance) : "");
  };
  add_runs(table, runs, [&](const SweepRun& run) {
    for (std::size_t v = 0; v < analyses::gain_variants.size(); ++v) {
      const auto& correlation = run.of(analyses::sink_vs_k).correlations[v];
      if (!correlation) continue;
      const analyses::SinkInference& inference = correlation->inference;
      const analyses::Correlation &pooled = correlation->pooled, &within = correlation->within_layers;
      table.rows.push_back({std::string(analyses::gain_variants[v].meaning), std::to_string(pooled.points),
                            r(pooled.pearson, inference.shift.pearson.null_mean), shown_p(pooled.pearson_naive_p),
                            permutation(inference.shift), left_out(inference.layers), left_out(inference.text),
                            r(within.pearson, inference.blocks.pearson.null_mean), shown_p(within.pearson_naive_p),
                            permutation(inference.blocks), inference.decision.verdict});
    }
  });
  return table;
}

PaperTable sinks_table(Runs runs) {
  const std::size_t most = runs.size() > 1 ? 8 : 20;
  PaperTable table{"sinks",
                   fmt::format("The heads with the largest BOS mass, at most {}: means over chunks at {}. Sink share: "
                               "share of the head's chunks whose mean attention to BOS exceeds 0.3. tables/sinks.csv "
                               "has all heads.",
                               most,
                               each_run_said(runs,
                                             [](const SweepRun& run) {
                                               return analyses::list_lengths(run.of(analyses::sink_vs_k).lengths);
                                             })),
                   {{"layer"},
                    {"head"},
                    {"attention"},
                    {"BOS mass"},
                    {"K"},
                    {"K without BOS"},
                    {"scaled K"},
                    {"n_eff (keys)"},
                    {"entropy (nats)"},
                    {"sink share"}},
                   {}};
  add_runs(table, runs, [&](const SweepRun& run) {
    const auto& sinks = run.of(analyses::sinks);
    if (!sinks) return;
    for (std::size_t i = 0; i < std::min(most, sinks->heads.size()); ++i) {
      const analyses::SinkHead& head = sinks->heads[i];
      if (!(head.bos_mass > 0)) break;  // ranked by mass: no sink comes after
      table.rows.push_back({std::to_string(head.layer), std::to_string(head.head), head.attention, shown(head.bos_mass),
                            shown(head.kalman_gain), shown(head.without_first_kalman_gain),
                            shown(head.kalman_gain_scaled), shown(head.n_eff), shown(head.entropy),
                            shown(head.sink_share)});
    }
  });
  return table;
}

std::string sink_numbers(const SweepRun& run) {
  const analyses::SinkVsK& sinks = run.of(analyses::sink_vs_k);
  std::string text;
  for (const analyses::SinkHeads& heads : sinks.sinks) {
    text += fmt::format("{}{} of {} above {}", text.empty() ? "" : "; ", counted(heads.heads, "head"),
                        sinks.points.size(), heads.threshold);
    if (heads.heads > 0)
      text += fmt::format(" ({}, smallest K {})", layers_in_words(heads.layers), shown(heads.smallest_gain));
  }
  text += '.';
  if (const std::string without = analyses::no_sink(sinks); !without.empty())
    text += " No head is a sink, so this run decides nothing about sinks.";
  if (sinks.late_gain) {
    text += fmt::format(" Late {}: K from {} to {}, largest BOS mass {}.", layers_in_words(sinks.late_layers),
                        shown(sinks.late_gain->low), shown(sinks.late_gain->high), shown(sinks.late_bos_mass));
  }
  if (const analyses::SinkCount& count = sinks.sinks_on_key_0; count.cells > 0)
    text += fmt::format(
        " Sink share of BOS: in {} of {} (head, chunk) pairs ({}) the queries put more than 0.3 of their attention "
        "on it on average.",
        count.sinks, count.cells, shown_percent(sinks.sink_share[0]));
  if (const auto& published = run.of(analyses::published_sinks))
    text += fmt::format(" At the length of the percentages that Gu et al. published, in this run: {}.",
                        analyses::published_sinks_in_words(*published));
  return text;
}

Caption sink_vs_k_caption(Runs runs) {
  const std::string apart = runs_said(runs, [](const SweepRun& run) {
    const analyses::SinkVsK& result = run.of(analyses::sink_vs_k);
    const auto hidden = static_cast<std::size_t>(std::count_if(
        result.points.begin(), result.points.end(), [](const analyses::SinkPoint& point) { return point.set_apart; }));
    if (hidden == 0) return std::string();
    if (hidden == result.points.size()) return std::string("No head can see BOS.");
    return fmt::format("{} that cannot see BOS {} not drawn.", counted(hidden, "head"), hidden == 1 ? "is" : "are");
  });
  return {
      fmt::format(
          "One point a head, means over chunks at {}; dotted lines at BOS mass 0.05 and 0.3, where a head reaches "
          "them.{} {}",
          runs_said(runs,
                    [](const SweepRun& run) { return analyses::list_lengths(run.of(analyses::sink_vs_k).lengths); }),
          (runs.size() > 1 ? std::string(" Each run has its colour and marker.")
                           : std::string(" Colour is the layer.")) +
              (apart.empty() ? "" : " " + apart),
          sentences_of(runs, sink_numbers)),
      "Whether heads that watch BOS are those with a gain near 1: (c) takes BOS out first, and (b) the scale of "
      "the values.",
      "A sink forces n_eff towards 1 and S towards 0, hence K towards 2d/(1+2d): (a) holds some of its relation by "
      "arithmetic. A correlation across layers may be one of depth; that within layers is not. Points are not "
      "independent: the table sets permutation tests beside each naive p."};
}

std::vector<Block> sinks_blocks(Runs runs) {
  std::vector<Block> all = {
      CaptionedFigure{"sink-vs-k", "BOS mass against K", sink_vs_k_caption(runs), sink_vs_k_figure(runs)},
      inference_table(runs), sinks_table(runs)};
  for (const SweepRun& run : runs) {
    const auto& sinks = run.of(analyses::sinks);
    if (!sinks)
      all.push_back(Html{fmt::format("<p class=\"absent\">{}Table of sink heads. Left out: {}.</p>\n",
                                     label_html(runs, run), to_html(sinks.reason()))});
  }
  return all;
}

void add_sinks_json(const SweepRun& run, OrderedJson& summary) {
  summary["sink_vs_k"] = to_json(run.of(analyses::sink_vs_k));
  if (const auto& published = run.of(analyses::published_sinks))
    summary["sink_vs_k"]["published_length"] = {{"tokens", analyses::published_sink_length},
                                                {"sinks", published->sinks},
                                                {"head_chunk_pairs", published->cells},
                                                {"sink_share", published->share()}};
  put(summary, "sinks", run.of(analyses::sinks));
}

std::vector<CsvTable> sinks_tables(const SweepRun& run) {
  std::vector<CsvTable> all = {points_csv(run.of(analyses::sink_vs_k)), correlations_csv(run.of(analyses::sink_vs_k))};
  if (const auto& sinks = run.of(analyses::sinks)) all.push_back(sinks_csv(*sinks));
  return all;
}

}  // namespace

const Section<SweepRun> sinks_section = {
    .name = "sink-vs-k",
    .title = "Sinks and gain",
    .question = "Do heads with much attention on BOS have a gain near 1, and which heads are they?",
    .files = {"sink-vs-k", "sink-vs-k-inference", "sink-vs-k-correlations", "sinks"},
    .keys = {"sink_vs_k", "sinks"},
    .blocks = sinks_blocks,
    .add_json = add_sinks_json,
    .tables = sinks_tables};

}  // namespace gainlens::reports
