#include "reports/captions.h"

#include "core/quantity.h"
#include "reports/figures.h"
#include "reports/shown.h"
#include "reports/wording.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::Aggregate;
using analyses::Maybe;
using analyses::Measured;
using Runs = std::span<const Results>;

std::string range(const Maybe<Aggregate>& first, const Maybe<Aggregate>& last, const char* format) {
  const auto text = [&](const Maybe<Aggregate>& value) {
    return value ? fmt::format(fmt::runtime(format), value->mean) : std::string("not known");
  };
  return fmt::format("{} to {}", text(first), text(last));
}

std::string capitalised(std::string sentence) {
  if (!sentence.empty() && sentence[0] >= 'a' && sentence[0] <= 'z')
    sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
  return sentence;
}

/// A sentence of each run, with its label in front where there are several.
std::string of_each(Runs runs, const std::function<std::string(const Results&)>& sentence) {
  std::string text;
  for (const Results& run : runs) {
    const std::string said = sentence(run);
    if (said.empty()) continue;
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", runs.size() > 1 ? run.label + ": " : "",
                        runs.size() > 1 ? said : capitalised(said));
  }
  return text;
}

/// What holds of the runs: said once where it is the same for all, else with the labels of those it holds of.
std::string of_runs(Runs runs, const std::function<std::string(const Results&)>& value) {
  std::vector<std::pair<std::string, std::string>> said;  // value, labels
  for (const Results& run : runs) {
    const std::string text = value(run);
    const auto same = std::find_if(said.begin(), said.end(), [&](const auto& entry) { return entry.first == text; });
    if (same == said.end()) {
      said.emplace_back(text, run.label);
    } else {
      same->second += ", " + run.label;
    }
  }
  if (said.size() == 1) return said.front().first;
  std::string text;
  for (const auto& [words, labels] : said) text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", words, labels);
  return text;
}

/// The policy of each run; once where it is the same.
std::string bos_sentence(Runs runs) {
  return fmt::format("BOS policy: {}.", of_runs(runs, [](const Results& run) {
                       return run.request.bos_policy +
                              (run.request.bos ? "" : "; no BOS token is put in front, so key 0 is an ordinary token");
                     }));
}

const char* overlay(Runs runs) {
  return runs.size() > 1 ? " Each run has its colour, marker and dash." : "";
}

std::string context_numbers(const Results& run, bool several) {
  const analyses::ContextPoint &first = run.context.points.front(), &last = run.context.points.back();
  std::string text =
      fmt::format("from {} to {} tokens n_eff goes from {} keys and the mean of lambda_obs is multiplied by {}.",
                  format_count(first.length.tokens), format_count(last.length.tokens),
                  range(first.n_eff, last.n_eff, "{:.1f}"), shown(last.precision_ratio));
  if (first.gate && run.context.points.size() > 1) {
    text += fmt::format(
        " The trained gate goes from {}; logit(gate) changes by {}, ln lambda_obs by {}, their difference is {} ({}).",
        range(first.gate, last.gate, "{:.3f}"), shown(last.logit_gate), shown(last.log_precision),
        shown(last.difference), last.difference.basis);
  } else if (!first.gate) {
    text += several ? " It has no values of a gate."
                    : fmt::format(" The gate's panel is left out: {}.", first.gate.reason());
  }
  return text;
}

std::string theory_numbers(const Results& run) {
  const analyses::GainTheory& theory = run.gain_theory;
  if (!theory.max_relative_error) return fmt::format("no prediction: {}.", theory.max_relative_error.reason());
  return fmt::format(
      "largest relative error {}, against {} for a constant K; skill {} (1 is perfect, 0 no better than the constant).",
      shown_percent(theory.max_relative_error), shown_percent(theory.max_constant_error), shown(theory.skill));
}

std::string sink_numbers(const Results& run) {
  const analyses::SinkVsK& sinks = run.sink_vs_k;
  std::string text;
  for (const analyses::SinkHeads& heads : sinks.sinks) {
    text += fmt::format("{}{} of {} above {}", text.empty() ? "" : "; ", counted(heads.heads, "head"),
                        sinks.points.size(), heads.threshold);
    if (heads.heads > 0)
      text += fmt::format(" (layers {}, smallest K {})", number_ranges(heads.layers), shown(heads.smallest_gain));
  }
  text += '.';
  if (sinks.late_gain) {
    text += fmt::format(" Late layers {}: K from {} to {}, largest BOS mass {}.", number_ranges(sinks.late_layers),
                        shown(sinks.late_gain->low), shown(sinks.late_gain->high), shown(sinks.late_bos_mass));
  }
  if (!sinks.sink_share.empty() && sinks.sink_share[0])
    text += fmt::format(" Sink share at key 0 (mean attention above 0.3): {}.", shown_percent(sinks.sink_share[0]));
  return text;
}

const char* purpose_of(const std::string& quantity) {
  if (quantity == "n_eff") return "Which heads average over many keys, and which over few.";
  if (quantity == "kalman_gain") return "Which heads carry much evidence against a prior of precision 1.";
  if (quantity == "bos_mass") return "Which heads are sinks, and at which depth.";
  return "How evenly each head spreads its attention.";
}

/// Tokens of the chunks that a run's maps of a group are over.
std::string map_tokens(const Results& run, std::size_t group) {
  for (const auto& map : run.heatmaps.at(group).maps) {
    if (map) return format_count(map->length.tokens);
  }
  return "no";
}

std::string norm_tokens(const Results& run) {
  return run.value_norms ? format_count(run.value_norms->length.tokens) : "no";
}

std::string norm_numbers(const Results& run) {
  if (!run.value_norms) return fmt::format("left out: {}.", run.value_norms.reason());
  double sum = 0, heads = 0;
  for (const analyses::ValueNorms& head : run.value_norms->heads) {
    if (!(head.rest > 0)) continue;
    sum += head.first[0] / head.rest;
    heads += 1;
  }
  if (heads == 0) return "every value beyond the first keys is zero.";
  return fmt::format(
      "on average over layers and KV heads the value of key 0 is {:.2f} times as long as that of a key beyond the "
      "first eight.",
      sum / heads);
}

}  // namespace

Caption context_caption(Runs runs) {
  const ContextMarks marks = context_marks(runs);
  std::string shows = runs.size() > 1 ? "Means over last-quarter queries of each run's deep layers"
                                      : fmt::format("Means over last-quarter queries of layers {}",
                                                    number_ranges(runs.front().context.deep_layers));
  if (marks.intervals) shows += "; bars are 95% intervals of the mean over chunks";
  if (marks.bands) shows += "; bands are one standard deviation over chunk, layer, head and query";
  if (runs.size() > 1) shows += "; ratio and changes are relative to each run's own shortest context";
  if (runs.size() > 1 && marks.gate) shows += "; filled markers ln lambda_obs, hollow ones logit(gate)";
  std::string cannot = marks.bands ? "Bands are spreads over heads, layers and queries, not uncertainty of the mean: a "
                                     "change inside the band can "
                                     "be certain."
                                   : "How much heads, layers and queries differ: only means are drawn.";
  if (!marks.intervals) cannot += " How sure the means are: that takes at least two chunks of a length.";
  if (marks.gate)
    cannot += " A gate that looks flat is not shown to be flat; the equivalence test in the table decides that.";
  return {fmt::format("{}.{} {}", shows, overlay(runs),
                      of_each(runs, [&](const Results& run) { return context_numbers(run, runs.size() > 1); })),
          "Whether evidence grows with context: n_eff counts the keys a query averages over, lambda_obs what they are "
          "worth. Where there "
          "is a gate, the panel of "
          "changes sets it and ln lambda_obs on the one scale on which they can be compared, since K = sigmoid(ln "
          "lambda_obs − ln lambda).",
          cannot + " Deep layers were chosen by position, not by outcome."};
}

Caption gain_theory_caption(Runs runs) {
  const bool intervals = std::any_of(runs.begin(), runs.end(), [](const Results& run) {
    const auto& points = run.gain_theory.points;
    return std::any_of(points.begin(), points.end(), [](const analyses::GainTheoryPoint& point) {
      return point.kalman_gain && point.kalman_gain->interval;
    });
  });
  return {fmt::format("K as measured (markers{}) and as one lambda, solved at the shortest context, predicts it from "
                      "aggregated n_eff and S "
                      "(lines); errors of this theory (filled) and of a constant K (hollow).{} {}",
                      intervals ? ", 95% intervals over chunks" : "", overlay(runs), of_each(runs, theory_numbers)),
          "Whether one lambda carries K from a short context to long ones, and whether that beats the guess that "
          "nothing changes.",
          "K is computed from n_eff and S, so agreement says that averaging loses little, not that a model uses K. The "
          "lines are fitted "
          "and judged on the same chunks; "
          "the table of checks tests them on unseen text. Scaled values have no fitted theory here. lambda* is not the "
          "mean of lambda_obs."};
}

Caption sink_vs_k_caption(Runs runs) {
  const bool apart =
      std::any_of(runs.begin(), runs.end(), [](const Results& run) { return !run.sink_vs_k.apart.empty(); });
  const std::string several = fmt::format(" Each run has its colour and marker{}.",
                                          apart ? "; hollow ones are set apart, since their window hides key 0" : "");
  return {
      fmt::format("One point a head, means over chunks at {}; dotted lines at BOS mass 0.05 and 0.3, where a head "
                  "reaches them.{} {} {}",
                  of_runs(runs, [](const Results& run) { return analyses::list_lengths(run.sink_vs_k.lengths); }),
                  runs.size() > 1 ? several : " Colour is the layer.", of_each(runs, sink_numbers), bos_sentence(runs)),
      "Whether heads that watch key 0 are those with a gain near 1: (c) takes key 0 out first, and (b) the scale of "
      "the values.",
      "A sink forces n_eff towards 1 and S towards 0, hence K towards 2d/(1+2d): (a) holds some of its relation by "
      "arithmetic. A "
      "correlation across layers may be "
      "one of depth; that within layers is not. Points are not independent: the table sets permutation tests beside "
      "each naive p."};
}

Caption heatmap_caption(Runs runs, std::size_t group) {
  for (const Results& run : runs) {
    const HeatmapGroup& maps = run.heatmaps.at(group);
    const auto present = std::find_if(maps.maps.begin(), maps.maps.end(), [](const auto& map) { return bool(map); });
    if (present == maps.maps.end()) continue;
    const analyses::Heatmap& map = **present;
    std::string shows =
        fmt::format("Mean over chunks of {} tokens, {}.",
                    of_runs(runs, [&](const Results& each) { return map_tokens(each, group); }), map.quantity.window);
    if (runs.size() > 1) shows += " The runs share the colour scale.";
    if (maps.name == "bos_mass") shows += " " + bos_sentence(runs);
    return {shows, purpose_of(maps.name),
            maps.name == "kalman_gain"
                ? "K has no scale of its own: only what K and scaled K agree on is a property of the attention."
                : "A mean over queries and chunks hides how a head differs from query to query. Head numbers carry no "
                  "order."};
  }
  return {};
}

Caption value_norms_caption(Runs runs) {
  const auto drawn = std::find_if(runs.begin(), runs.end(), [](const Results& run) { return bool(run.value_norms); });
  if (drawn == runs.end()) return {};
  return {
      fmt::format("Euclidean norms of value vectors at the longest context ({} tokens), means over chunks{}.{} {} {}",
                  of_runs(runs, norm_tokens),
                  runs.size() > 1 ? " and KV heads" : "; in (b) one point a KV head, coloured by layer", overlay(runs),
                  of_each(runs, norm_numbers), bos_sentence(runs)),
      "Whether the value that a sink attends to is short, which the sink-necessity lemma asks for.",
      "A short value at key 0 does not show that a head preserves its state by it: that takes the attention it gets, "
      "which the audit "
      "sets against the bound."};
}

Caption sink_lemma_caption(Runs runs) {
  return {fmt::format("One point a head, means over second-half queries: the weight alpha_1 of key 0 against the bound "
                      "1 − (delta + "
                      "epsilon)/(mu c) that the sink "
                      "lemma puts on it, and, hollow, against the bound with the gained estimate for delta. Dashed: "
                      "equality; the lemma "
                      "says that no filled point "
                      "lies below it.{}",
                      overlay(runs)),
          "Where the lemma binds: points at the left say nothing, as their bound is 0 or below at most queries; filled "
          "points near the "
          "line are sinks that it demands. "
          "Hollow points below the line are heads that would be free of the demand with the gain.",
          "The lemma is the triangle inequality in head space, so that agreement is no evidence for the theory around "
          "it: a point below "
          "the line would be an error of "
          "measurement. The model runs without the gain; what it would learn with it is not shown."};
}

}  // namespace gainlens::reports
