#include "reports/captions.h"

#include "core/quantity.h"
#include "reports/wording.h"

#include <algorithm>

namespace gainlens::reports {
namespace {

using analyses::Aggregate;
using analyses::Interval;
using analyses::Maybe;
using analyses::Measured;

std::string shown(const Measured& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "not known";
}

std::string range(const Maybe<Aggregate>& first, const Maybe<Aggregate>& last, const char* format) {
  const auto text = [&](const Maybe<Aggregate>& value) {
    return value ? fmt::format(fmt::runtime(format), value->mean) : std::string("not known");
  };
  return fmt::format("{} to {}", text(first), text(last));
}

std::string with_interval(const analyses::Change& change) {
  if (!change.mean) return "not known";
  if (!change.interval) return fmt::format("{:+.3f}", *change.mean);
  return fmt::format("{:+.3f} [{:+.3f}, {:+.3f}]", *change.mean, change.interval->low, change.interval->high);
}

std::string bos_sentence(const Results& results) {
  return fmt::format("BOS policy: {}.{}", results.request.bos_policy,
                     results.request.bos ? "" : " No BOS token is put in front, so key 0 is an ordinary token.");
}

}  // namespace

Caption context_caption(const Results& results) {
  const analyses::Context& context = results.context;
  const analyses::ContextPoint &first = context.points.front(), &last = context.points.back();
  std::string shows = fmt::format(
      "Means over last-quarter queries of layers {} as the context grows from {} to {} tokens. The effective sample size goes from {} "
      "keys; "
      "the mean observation precision is multiplied by {}.",
      number_ranges(context.deep_layers), format_count(first.length.tokens), format_count(last.length.tokens),
      range(first.n_eff, last.n_eff, "{:.1f}"), shown(last.precision_ratio, "{:.2f}"));
  if (first.gate) {
    shows += fmt::format(
        " The trained gate goes from {}. Like for like, since K = sigmoid(ln λ_obs − ln λ): logit(gate) changes by {}, ln λ_obs by {}, "
        "their difference is {} (95% intervals over {} chunks).",
        range(first.gate, last.gate, "{:.3f}"), with_interval(last.logit_gate), with_interval(last.log_precision),
        with_interval(last.difference), last.difference.pairs);
  } else {
    shows += fmt::format(" The gate's panels are left out: {}.", first.gate.reason());
  }
  return {shows,
          "Bands are spreads over heads, layers and queries, not uncertainty of the mean: a change inside the band can be certain. A flat "
          "gate is not "
          "shown to be blind: that takes an equivalence test with a stated margin. Deep layers were chosen by position, not by outcome."};
}

Caption gain_theory_caption(const Results& results) {
  const analyses::GainTheory& theory = results.gain_theory;
  return {
      fmt::format(
          "One λ = {}, solved at the shortest context, turns the aggregated n_eff and S into a prediction of the mean K at the others. "
          "Largest relative error {}%, against {}% for the guess that K does not change; skill {} (1 is perfect, 0 no better than the "
          "constant). "
          "λ* is not the mean of λ_obs.",
          shown(theory.prior_precision, "{:.3g}"),
          theory.max_relative_error ? fmt::format("{:.2f}", 100 * *theory.max_relative_error) : "not known",
          theory.max_constant_error ? fmt::format("{:.2f}", 100 * *theory.max_constant_error) : "not known", shown(theory.skill, "{:.2f}")),
      "K is computed from n_eff and S, so agreement says that averaging loses little, not that a model uses K. λ is fitted and judged on "
      "the same "
      "chunks. Scaled values have no fitted theory here."};
}

Caption sink_vs_k_caption(const Results& results) {
  const analyses::SinkVsK& sinks = results.sink_vs_k;
  std::string shows = fmt::format("One point a head, means over chunks at {}; colour is the layer. Dotted lines: BOS mass 0.05 and 0.3. {}",
                                  analyses::list_lengths(sinks.lengths), bos_sentence(results));
  for (const analyses::SinkHeads& heads : sinks.sinks) {
    shows += fmt::format(" Above {}: {}", heads.threshold, counted(heads.heads, "head"));
    if (heads.heads > 0)
      shows += fmt::format(" in layers {}, smallest K {}", number_ranges(heads.layers), shown(heads.smallest_gain, "{:.3f}"));
    shows += '.';
  }
  if (sinks.late_gain) {
    shows += fmt::format(" Late layers {}: K from {:.3f} to {:.3f}, largest BOS mass {}.", number_ranges(sinks.late_layers),
                         sinks.late_gain->low, sinks.late_gain->high, shown(sinks.late_bos_mass, "{:.3f}"));
  }
  return {
      shows,
      "A sink forces n_eff towards 1 and S towards 0, hence K towards 1: (a) holds some of this by arithmetic. (c) takes key 0 out first; "
      "(b) takes the scale of the values out. The p-values are naive: heads of a layer are not independent. A correlation across layers "
      "may "
      "be one of depth; the one within layers is not."};
}

Caption heatmap_caption(const HeatmapGroup& group, const Results& results) {
  const auto present = std::find_if(group.maps.begin(), group.maps.end(), [](const auto& map) { return bool(map); });
  if (present == group.maps.end()) return {};
  const analyses::Heatmap& map = **present;
  std::string shows = fmt::format("Mean over {} of {} tokens, {}.", counted(map.length.samples.size(), "chunk"),
                                  format_count(map.length.tokens), map.quantity.window);
  if (group.name == "bos_mass") shows += fmt::format(" {}", bos_sentence(results));
  if (group.name == "kalman_gain") shows += " (a) at the values' own scale, (b) with values scaled to unit variance.";
  return {shows, group.name == "kalman_gain"
                     ? "K has no scale of its own: only what (a) and (b) agree on is a property of the attention."
                     : "A mean over queries and chunks hides how the heads differ from query to query. Head numbers carry no order."};
}

Caption value_norms_caption(const Results& results) {
  if (!results.value_norms) return {};
  const analyses::ValueNormsResult& norms = *results.value_norms;
  double ratio = 0;
  for (const analyses::ValueNorms& head : norms.heads)
    ratio += head.rest > 0 ? head.first[0] / head.rest / static_cast<double>(norms.heads.size()) : 0;
  return {fmt::format("Euclidean norms of value vectors over {} of {} tokens. On average over layers and KV heads the value of key "
                      "0 is {:.2f} times as "
                      "long as that of a key beyond the first eight. {}",
                      counted(norms.length.samples.size(), "chunk"), format_count(norms.length.tokens), ratio, bos_sentence(results)),
          "A short value at key 0 is what the sink-necessity lemma asks for; it does not show that a head preserves its state by it."};
}

}  // namespace gainlens::reports
