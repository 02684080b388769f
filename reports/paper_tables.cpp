#include "reports/paper_tables.h"

#include "core/quantity.h"
#include "reports/run_rows.h"
#include "reports/shown.h"
#include "reports/wording.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace gainlens::reports {
namespace {

using analyses::Measured;
using Row = std::vector<std::string>;

std::string short_digest(const std::string& digest) {
  return digest.size() == 64 ? digest.substr(0, 12) : digest;
}

std::string yes_or_no(bool value) {
  return value ? "yes" : "no";
}

std::string weights_digest(const runfile::Request& request) {
  std::string text;
  for (const auto& [file, digest] : request.model) {
    if (file != "config.json") text += (text.empty() ? "" : ", ") + short_digest(digest);
  }
  return text.empty() ? "–" : text;
}

std::string chunking(const runfile::Request& request) {
  const std::string placed = request.spread ? "spread over the text" : "consecutive text";
  return request.nested ? placed + ", shorter ones nested in the longest" : placed;
}

std::string attention_of(const runfile::Request& request) {
  std::map<std::string, std::size_t> kinds;
  for (const std::string& kind : request.attention) ++kinds[kind];
  std::string text;
  for (const auto& [kind, count] : kinds)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", kind, counted(count, "layer"));
  return text;
}

std::string lengths_of(const Results& run) {
  std::vector<analyses::Length> lengths;
  for (const LengthFacts& facts : run.lengths) lengths.push_back(facts.length);
  return analyses::list_lengths(lengths);
}

std::string chunks_of(const Results& run) {
  std::size_t complete = 0;
  for (const LengthFacts& facts : run.lengths) complete += facts.length.samples.size();
  return fmt::format("{} of {}", complete, run.lengths.size() * static_cast<std::size_t>(run.request.samples));
}

std::string nll_of(const Results& run) {
  const LengthFacts& longest = run.lengths.back();
  return longest.nll ? with_interval(shown(longest.nll), longest.nll_interval) : "–";
}

/// Whether a change is one: nothing at the shortest length, where it is 0 by construction.
std::string flatness(const analyses::Change& change, bool shortest) {
  if (shortest || !change.mean) return "–";
  switch (change.flat.flatness) {
    case analyses::Flatness::equivalent:
      return "yes";
    case analyses::Flatness::changes:
      return "no";
    case analyses::Flatness::not_shown:
      return "not shown";
    case analyses::Flatness::unknown:
      break;
  }
  return "not known";
}

/// The ratio of means with its own interval, which at the shortest length has no width.
std::string shown_ratio(const analyses::ContextPoint& point, bool shortest) {
  return shortest ? shown(point.precision_ratio)
                  : with_interval(shown(point.precision_ratio), point.precision_ratio_interval);
}

std::string permutation(const analyses::PermutationTest& test) {
  if (!test.pearson.p) return "refused";
  return shown_p(test.pearson.p);
}

std::string left_out(const analyses::Maybe<analyses::Jackknife>& result,
                     const analyses::Maybe<analyses::Interval> analyses::Jackknife::*which) {
  if (!result) return "refused";
  const auto& interval = (*result).*which;
  return interval ? fmt::format("[{:+.2f}, {:+.2f}]", interval->low, interval->high) : "–";
}

/// "refused: " with each reason once; empty where nothing was refused.
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

std::string shown_error(const analyses::TheoryError& length) {
  const auto percent = [](double share) { return fmt::format("{:+.2f}%", 100 * share); };
  return fmt::format("{} [{}, {}]", percent(length.error), percent(length.interval.low), percent(length.interval.high));
}

void add_gain_checks(PaperTable& table, const analyses::GainTheory& theory) {
  table.rows.push_back({"the chunks it was fitted on", shown_percent(theory.max_relative_error),
                        shown_percent(theory.max_constant_error), shown(theory.skill), "the paper's way"});
  if (theory.unseen) {
    const analyses::TheoryEquivalence& test = *theory.unseen;
    const analyses::TheoryError& worst = test.worst();
    table.rows.push_back({"each chunk left out in turn", shown_percent(test.left_out.relative),
                          shown_percent(test.left_out.constant), shown(test.left_out.skill),
                          fmt::format("lambda from the others; mean over {}", counted(test.chunks, "chunk"))});
    table.rows.push_back({"unseen text of this kind", shown_error(worst), shown_percent(std::abs(worst.constant_error)),
                          "–",
                          fmt::format("at {}, where it is largest; 90% interval from {}; margin ±{:g}%",
                                      format_count(worst.tokens), counted(test.chunks, "chunk"), 100 * test.margin)});
  } else {
    table.rows.push_back({"unseen text of this kind", "–", "–", "–", theory.unseen.reason()});
  }
  if (theory.cells) {
    const analyses::CellErrors& cells = *theory.cells;
    table.rows.push_back(
        {"each deep head by itself", shown_percent(cells.median_error), shown_percent(cells.median_constant_error), "–",
         fmt::format("median over {}; worst {} (layer {}, head {}); better than the constant in {}",
                     counted(cells.cells.size(), "head"), shown_percent(cells.worst.max_relative_error),
                     cells.worst.layer, cells.worst.head, cells.better_than_constant)});
  } else {
    table.rows.push_back({"each deep head by itself", "–", "–", "–", theory.cells.reason()});
  }
}

}  // namespace

PaperTable runs_paper_table(const Report& report) {
  PaperTable table{"runs", "What was run. Checksums are the first twelve digits of sha256.", {{"", true}}, {}};
  for (const Results& run : report.runs)
    table.columns.push_back({report.runs.size() > 1 ? run.label : "this run", true});
  const auto add = [&](const char* what, const std::function<std::string(const Results&)>& value) {
    Row row = {what};
    for (const Results& run : report.runs) row.push_back(value(run));
    table.rows.push_back(std::move(row));
  };
  add("model family", [](const Results& run) { return run.request.family; });
  add("weights", [](const Results& run) { return weights_digest(run.request); });
  add("layers × heads", [](const Results& run) {
    return fmt::format("{} × {} ({})", run.request.layers.size(), run.request.heads,
                       counted(run.request.kv_heads, "KV head"));
  });
  add("head dimension", [](const Results& run) { return std::to_string(run.request.head_dim); });
  add("attention", [](const Results& run) { return attention_of(run.request); });
  add("attention gate", [](const Results& run) { return yes_or_no(run.request.gated); });
  add("text", [](const Results& run) { return short_digest(run.request.text); });
  add("tokenizer", [](const Results& run) { return short_digest(run.request.tokenizer); });
  add("BOS policy", [](const Results& run) { return run.request.bos_policy; });
  add("context lengths (tokens)", lengths_of);
  add("chunks, complete", chunks_of);
  add("tokens measured", [](const Results& run) {
    std::int64_t tokens = 0;
    for (const LengthFacts& facts : run.lengths)
      tokens += facts.length.tokens * static_cast<std::int64_t>(facts.length.samples.size());
    return std::to_string(tokens);
  });
  add("chunking", [](const Results& run) { return chunking(run.request); });
  add("NLL at the longest (nats per token)", nll_of);
  add("dtype, device", [](const Results& run) { return fmt::format("{}, {}", run.request.dtype, run.request.device); });
  add("shards proven by sha256", [](const Results& run) { return std::to_string(run.proof.shards); });
  return table;
}

PaperTable verdicts_paper_table(const Report& report) {
  PaperTable table{
      "verdicts",
      "The paper's predictions against this measurement. The naive inference is the paper's; the honest one decides.",
      {{"claim", true},
       {"measured here", true},
       {"naive inference", true},
       {"honest inference", true},
       {"verdict", true}},
      {}};
  const bool several = report.runs.size() > 1;
  for (const Results& run : report.runs) {
    for (const analyses::Prediction& prediction : run.verdicts.predictions) {
      table.rows.push_back({fmt::format("{}Prediction {}: {} — {}", several ? run.label + ". " : "", prediction.number,
                                        prediction.title, in_words(prediction.ruling))});
      for (const analyses::Claim& claim : prediction.claims) {
        table.rows.push_back({claim.claim, claim.measurement, claim.naive, claim.honest,
                              std::string(in_words(claim.ruling)) + (claim.reason.empty() ? "" : ": " + claim.reason)});
      }
    }
  }
  return table;
}

PaperTable context_paper_table(const Report& report) {
  const auto has_gate = [](const Results& run) { return bool(run.context.points.front().gate); };
  const bool gated = std::any_of(report.runs.begin(), report.runs.end(), has_gate);
  const analyses::Context& context = report.runs.front().context;
  PaperTable table{"context",
                   fmt::format("Evidence by context length: means over the deep layers' last-quarter queries ({}), "
                               "with 95% intervals of the mean over "
                               "chunks; the ratio is of means, Δ the mean change of the chunks' logarithms since "
                               "T_min, each with its own interval.",
                               of_each(report,
                                       [](const Results& run) {
                                         return fmt::format("layers {}", number_ranges(run.context.deep_layers));
                                       })),
                   {{"T (tokens)"}, {"n_eff (keys)"}, {"lambda_obs / lambda_obs(T_min)"}, {"Δ ln lambda_obs (nats)"}},
                   {}};
  if (gated) {
    table.caption += fmt::format(
        " Flat: whether logit(gate) is equivalent to flat within ±{:g} (TOST, level 0.05); {}. Difference: Δ "
        "logit(gate) less Δ ln "
        "lambda_obs.",
        context.equivalence_margin, context.margin_meaning);
    for (const char* heading : {"gate", "Δ logit(gate) (nats)", "flat", "difference (nats)"})
      table.columns.push_back({heading});
  }
  add_runs(table, report, [&](const Results& run) {
    for (std::size_t i = 0; i < run.context.points.size(); ++i) {
      const analyses::ContextPoint& point = run.context.points[i];
      Row row = {format_count(point.length.tokens), shown(point.n_eff), shown_ratio(point, i == 0),
                 i == 0 ? "–" : shown(point.log_precision)};
      if (gated) {
        row.push_back(shown(point.gate));
        row.push_back(i == 0 ? "–" : shown(point.logit_gate));
        row.push_back(flatness(point.logit_gate, i == 0));
        row.push_back(i == 0 ? "–" : shown(point.difference));
      }
      table.rows.push_back(std::move(row));
    }
  });
  return table;
}

PaperTable context_by_attention_paper_table(const Report& report) {
  PaperTable table{
      "context-by-attention",
      "Evidence by context length and kind of attention: means over all layers of a kind, last-quarter queries, with "
      "95% intervals "
      "of the mean over chunks; the ratio is of means, Δ the mean change of the chunks' logarithms since T_min, each "
      "with its own "
      "interval. A window bounds the keys a query can see whatever "
      "the context: a mean over both kinds dilutes what the global layers do.",
      {{"attention"}, {"T (tokens)"}, {"n_eff (keys)"}, {"lambda_obs / lambda_obs(T_min)"}, {"Δ ln lambda_obs (nats)"}},
      {}};
  add_runs(table, report, [&](const Results& run) {
    for (const auto& [attention, context] : run.context_by_attention) {
      for (std::size_t i = 0; i < context.points.size(); ++i) {
        const analyses::ContextPoint& point = context.points[i];
        table.rows.push_back({i == 0 ? fmt::format("{}, layers {}", attention, number_ranges(context.deep_layers)) : "",
                              format_count(point.length.tokens), shown(point.n_eff), shown_ratio(point, i == 0),
                              i == 0 ? "–" : shown(point.log_precision)});
      }
    }
  });
  return table;
}

PaperTable gain_theory_paper_table(const Report& report) {
  const std::string fitted =
      of_each(report, [](const Results& run) { return "lambda = " + shown(run.gain_theory.prior_precision) + "."; });
  PaperTable table{"gain-theory",
                   "Gain theory by context length. lambda* = (n_eff + nu)/(S + nu sigma0^2) of aggregated n_eff and S; "
                   "one lambda is fitted at T_min. " +
                       fitted,
                   {{"T (tokens)"},
                    {"n_eff (keys)"},
                    {"S"},
                    {"lambda*"},
                    {"K measured"},
                    {"K predicted"},
                    {"error (%)"},
                    {"of constant (%)"},
                    {"skill"},
                    {"scaled K"}},
                   {}};
  const auto percent = [](const Measured& share) {
    return share ? fmt::format("{:.2f}", 100 * *share) : std::string("–");
  };
  add_runs(table, report, [&](const Results& run) {
    for (const analyses::GainTheoryPoint& point : run.gain_theory.points) {
      table.rows.push_back({format_count(point.length.tokens), point.n_eff ? shown(point.n_eff->mean) : "–",
                            point.residual ? shown(point.residual->mean) : "–", shown(point.aggregated_precision),
                            shown(point.kalman_gain), shown(point.predicted_gain), percent(point.relative_error),
                            percent(point.constant_error), shown(point.skill), shown(point.kalman_gain_scaled)});
    }
  });
  return table;
}

PaperTable gain_checks_paper_table(const Report& report) {
  PaperTable table{
      "gain-theory-checks",
      fmt::format("How far the gain theory holds beyond what it was fitted on: largest relative error over the "
                  "lengths, that of "
                  "a constant K, and skill. An error within ±{:g}% counts as none; the paper reports {:g}% at most.",
                  100 * report.runs.front().gain_theory.margin, 100 * analyses::paper_theory_error),
      {{"judged on", true}, {"theory"}, {"constant"}, {"skill"}, {"how", true}},
      {}};
  add_runs(table, report, [&](const Results& run) { add_gain_checks(table, run.gain_theory); });
  return table;
}

PaperTable inference_paper_table(const Report& report) {
  PaperTable table{
      "sink-vs-k-inference",
      fmt::format(
          "BOS mass against K over heads: Pearson's r, its naive p (heads taken as independent) and the inference that "
          "does not take "
          "them so. The block permutation exchanges KV groups within layers, the circular shift moves layers; what r "
          "is by chance alone, "
          "where that is not 0, stands behind it, and p is of the difference. 95% intervals leave out one layer, or "
          "one stretch of text, "
          "at a time. {}",
          of_each(report, [](const Results& run) { return resampling_of(run.sink_vs_k) + refusals(run.sink_vs_k); })),
      {{"K of", true},
       {"heads"},
       {"r pooled"},
       {"naive p"},
       {"shift p"},
       {"without a layer"},
       {"without a text"},
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
  add_runs(table, report, [&](const Results& run) {
    for (std::size_t v = 0; v < analyses::gain_variants.size(); ++v) {
      const auto& correlation = run.sink_vs_k.correlations[v];
      if (!correlation) continue;
      const analyses::SinkInference& inference = correlation->inference;
      const analyses::Correlation &pooled = correlation->pooled, &within = correlation->within_layers;
      table.rows.push_back({std::string(analyses::gain_variants[v].meaning), std::to_string(pooled.points),
                            r(pooled.pearson, inference.shift.pearson.null_mean), shown_p(pooled.pearson_naive_p),
                            permutation(inference.shift), left_out(inference.layers, &analyses::Jackknife::pearson),
                            left_out(inference.text, &analyses::Jackknife::pearson),
                            r(within.pearson, inference.blocks.pearson.null_mean), shown_p(within.pearson_naive_p),
                            permutation(inference.blocks), inference.decision.verdict});
    }
  });
  return table;
}

PaperTable sinks_paper_table(const Report& report) {
  PaperTable table{
      "sinks",
      fmt::format("The strongest sink heads: means over chunks at {}. Sink share: share of chunks whose mean attention "
                  "to key 0 exceeds 0.3.",
                  of_each(report, [](const Results& run) { return analyses::list_lengths(run.sink_vs_k.lengths); })),
      {{"layer"},
       {"head"},
       {"attention"},
       {"BOS mass"},
       {"K"},
       {"K without key 0"},
       {"scaled K"},
       {"n_eff (keys)"},
       {"entropy (nats)"},
       {"sink share"}},
      {}};
  const std::size_t most = report.runs.size() > 1 ? 8 : 20;
  add_runs(table, report, [&](const Results& run) {
    if (!run.sinks) return;
    for (std::size_t i = 0; i < std::min(most, run.sinks->heads.size()); ++i) {
      const analyses::SinkHead& head = run.sinks->heads[i];
      table.rows.push_back({std::to_string(head.layer), std::to_string(head.head), head.attention, shown(head.bos_mass),
                            shown(head.kalman_gain), shown(head.without_first_kalman_gain),
                            shown(head.kalman_gain_scaled), shown(head.n_eff), shown(head.entropy),
                            shown(head.sink_share)});
    }
  });
  return table;
}

std::vector<PaperTable> paper_tables(const Report& report) {
  std::vector<PaperTable> tables = {runs_paper_table(report),         verdicts_paper_table(report),
                                    context_paper_table(report),      context_by_attention_paper_table(report),
                                    neighbours_paper_table(report),   gain_theory_paper_table(report),
                                    gain_checks_paper_table(report),  inference_paper_table(report),
                                    sinks_paper_table(report),        lemma_paper_table(report),
                                    prior_shares_paper_table(report), statements_paper_table(report)};
  for (std::size_t i = 0; i < report.contrasts.size(); ++i) {
    for (PaperTable table :
         {run_differences_paper_table(report.contrasts[i]), differences_paper_table(report.contrasts[i])}) {
      if (i > 0) table.name += fmt::format("-{}", i + 2);
      tables.push_back(std::move(table));
    }
  }
  std::erase_if(tables, [](const PaperTable& table) { return table.rows.empty(); });
  return tables;
}

}  // namespace gainlens::reports
