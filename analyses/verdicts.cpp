#include "analyses/verdicts.h"

#include "core/quantity.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace gainlens::analyses {
namespace {

constexpr std::size_t measured_gain = 0, without_first = 4;  // among gain_variants
static_assert(gain_variants[without_first].name == "without_first_kalman_gain");

std::string shown(const Measured& value, const char* format = "{:+.3f}") {
  return value ? fmt::format(fmt::runtime(format), *value) : "not known";
}

std::string percent(const Measured& share) {
  return share ? fmt::format("{:.2f}%", 100 * *share) : "not known";
}

std::string shown(const Maybe<Interval>& interval, const char* format = "[{:+.3f}, {:+.3f}]") {
  return interval ? fmt::format(fmt::runtime(format), interval->low, interval->high) : "not known (" + interval.reason() + ")";
}

std::string shown_mean(const Maybe<Aggregate>& aggregate, const char* format) {
  return aggregate ? fmt::format(fmt::runtime(format), aggregate->mean) : "not known";
}

std::string in_words(std::string_view name, const PermutationTest& test) {
  if (!test.pearson.p) return fmt::format("{}: {}", name, test.pearson.p.reason());
  return fmt::format("{}: p = {:.2g} ({})", name, *test.pearson.p,
                     test.exact ? "all " + count_arrangements(test.arrangements) : fmt::format("{} draws", test.resamples));
}

std::string decision_in_words(const Maybe<SinkCorrelation>& correlation) {
  if (!correlation) return correlation.reason();
  const SinkDecision& decision = correlation->inference.decision;
  if (!decision.p) return decision.verdict;
  return fmt::format("{} (r = {:+.3f}, p = {:.2g})", decision.verdict, *decision.statistic, *decision.p);
}

/// The test that decides, with what it cannot tell apart.
std::string named(const SinkDecision& decision) {
  const bool shift = decision.test == "circular shift";
  return fmt::format("{}{}", decision.test, shift ? " (to which a trend along the depth in both looks the same)" : "");
}

std::pair<Ruling, std::string> rule_on_sinks(const SinkVsK& sinks) {
  const auto& k = sinks.correlations[measured_gain];
  const auto& control = sinks.correlations[without_first];
  if (!k) return {Ruling::not_decidable, k.reason()};
  const SinkDecision& decision = k->inference.decision;
  if (!decision.p) return {Ruling::not_decidable, decision.p.reason()};
  if (decision.verdict == "negative") {
    const std::string reason =
        fmt::format("by the {}, sink heads have the smaller K; K without key 0: {}", named(decision), decision_in_words(control));
    const bool opposed = control && control->inference.decision.verdict == "positive";
    return {opposed ? Ruling::not_shown : Ruling::contradicted, reason};
  }
  if (decision.verdict == "not shown") return {Ruling::not_shown, fmt::format("the {} finds no relation", decision.test)};
  if (!control || control->inference.decision.verdict != "positive") {
    return {Ruling::not_shown,
            fmt::format("K alone rises with BOS mass, which arithmetic can do by itself; K without key 0: {}", decision_in_words(control))};
  }
  return {Ruling::supported, fmt::format("by the {}, and K without key 0, where the arithmetic is taken out, agrees", named(decision))};
}

Prediction sink_prediction(const SinkVsK& sinks) {
  const auto& k = sinks.correlations[measured_gain];
  Claim claim{"heads with more BOS mass have the larger K", "", "", "", Ruling::not_decidable, ""};
  std::tie(claim.ruling, claim.reason) = rule_on_sinks(sinks);
  if (k) {
    claim.measurement = fmt::format("Pearson {} over {} heads at {}, {} within layers", shown(k->pooled.pearson), k->pooled.points,
                                    list_lengths(sinks.lengths), shown(k->within_layers.pearson));
    claim.naive = fmt::format("p = {} over all heads", shown(k->pooled.pearson_naive_p, "{:.2g}"));
    const SinkInference& honest = k->inference;
    claim.honest = fmt::format("{}; {}; K without key 0: {}", in_words("block permutation", honest.blocks),
                               in_words("circular shift", honest.shift), decision_in_words(sinks.correlations[without_first]));
  } else {
    claim.measurement = claim.naive = claim.honest = "none: " + k.reason();
  }
  if (!sinks.bos) claim.reason += "; key 0 is ordinary text here";
  return {1, "Sink heads are those with a gain near 1", {claim}, claim.ruling, claim.reason};
}

Claim evidence_claim(const Context& context) {
  const ContextPoint &first = context.points.front(), &last = context.points.back();
  const Change& change = last.log_precision;
  Claim claim{
      "the evidence grows with the context",
      fmt::format("{} to {} tokens: n_eff {} to {}, ln lambda_obs {}", format_count(first.length.tokens), format_count(last.length.tokens),
                  shown_mean(first.n_eff, "{:.2f}"), shown_mean(last.n_eff, "{:.2f}"), shown(change.mean)),
      fmt::format("lambda_obs multiplied by {}, standard deviation over cells {}", shown(last.precision_ratio, "{:.3f}"),
                  shown(last.precision_ratio_deviation, "{:.3f}")),
      fmt::format("95% interval {} over {} paired chunks", shown(change.interval), change.pairs),
      Ruling::not_decidable,
      ""};
  if (!change.flat.difference_p) {
    claim.reason = change.flat.difference_p.reason();
  } else if (*change.flat.difference_p > significance) {
    claim.ruling = Ruling::not_shown;
    claim.reason = "the interval of the change of ln lambda_obs holds 0";
  } else {
    claim.ruling = *change.mean > 0 ? Ruling::supported : Ruling::contradicted;
    claim.reason = *change.mean > 0 ? "ln lambda_obs rises beyond the noise of the chunks" : "ln lambda_obs falls";
  }
  return claim;
}

Claim theory_claim(const GainTheory& theory) {
  Claim claim{
      "K follows from n_eff and S with one lambda",
      fmt::format("largest relative error {} (constant K: {})", percent(theory.max_relative_error), percent(theory.max_constant_error)),
      "fitted and judged on the same chunks",
      "",
      Ruling::not_decidable,
      ""};
  if (!theory.split_half) {
    claim.reason = theory.split_half.reason();
    claim.honest = "split-half: " + claim.reason;
    return claim;
  }
  const SplitHalf& split = *theory.split_half;
  if (!split.skill) {
    claim.reason = split.skill.reason();
    claim.honest = "split-half: no skill: " + claim.reason;
    return claim;
  }
  claim.honest = fmt::format("split-half ({} splits): largest error {:.2f}%, constant {:.2f}%, skill {:.2f} [{:.2f}, {:.2f}]", split.splits,
                             100 * split.max_relative_error.mean, 100 * split.max_constant_error.mean, split.skill->mean,
                             split.skill->least, split.skill->largest);
  if (split.skill->least > 0) {
    claim.ruling = Ruling::supported;
    claim.reason = "on unseen chunks it beats the constant in every split";
  } else if (split.skill->largest < 0) {
    claim.ruling = Ruling::contradicted;
    claim.reason = "on unseen chunks the constant K is better in every split";
  } else {
    claim.ruling = Ruling::not_shown;
    claim.reason = "on unseen chunks it beats the constant in some splits alone";
  }
  return claim;
}

/// Flat at every length above the shortest: each test must pass, which needs no correction for their number.
std::pair<Ruling, std::string> rule_on_gate(const Context& context) {
  if (context.points.size() < 2) return {Ruling::not_decidable, "the run has one length"};
  bool everywhere = true;
  for (std::size_t i = 1; i < context.points.size(); ++i) {
    const Equivalence& flat = context.points[i].logit_gate.flat;
    if (flat.flatness == Flatness::unknown) return {Ruling::not_decidable, flat.p.reason()};
    everywhere = everywhere && flat.flatness == Flatness::equivalent;
  }
  if (everywhere) return {Ruling::supported, in_words(context.points.back().logit_gate.flat) + " at every length"};
  const Equivalence& last = context.points.back().logit_gate.flat;
  if (last.flatness == Flatness::changes) return {Ruling::contradicted, "logit(gate) changes between the shortest and the longest length"};
  return {Ruling::not_shown, fmt::format("not shown to be flat within ±{:g} at every length", last.margin)};
}

Claim gate_claim(const Context& context) {
  const ContextPoint &first = context.points.front(), &last = context.points.back();
  Claim claim{"the trained gate stays flat", "", "", "", Ruling::not_decidable, ""};
  std::tie(claim.ruling, claim.reason) = rule_on_gate(context);
  if (!last.gate) {
    claim.measurement = claim.naive = claim.honest = "none: " + last.gate.reason();
    claim.reason = last.gate.reason();
    return claim;
  }
  claim.measurement = fmt::format("gate {} to {}, logit(gate) {}", shown_mean(first.gate, "{:.3f}"), shown_mean(last.gate, "{:.3f}"),
                                  shown(last.logit_gate.mean));
  claim.naive = fmt::format("standard deviation over cells {}", shown(last.gate->deviation, "{:.3f}"));
  claim.honest =
      fmt::format("90% interval {} over {} paired chunks, margin ±{:g}: {}; less ln lambda_obs: {}", shown(last.logit_gate.flat.interval),
                  last.logit_gate.pairs, context.equivalence_margin, in_words(last.logit_gate.flat), shown(last.difference.interval));
  return claim;
}

/// What the claims of one prediction come to.
std::pair<Ruling, std::string> combine(const std::vector<Claim>& claims) {
  Ruling ruling = Ruling::supported;
  std::string reason = "every part is supported";
  for (const Ruling worse : {Ruling::not_decidable, Ruling::not_shown, Ruling::contradicted}) {
    for (const Claim& claim : claims) {
      if (claim.ruling != worse) continue;
      ruling = worse;
      reason = fmt::format("{}: {}", claim.claim, claim.reason);
    }
  }
  return {ruling, reason};
}

Prediction tracking_prediction(const Context& context, const GainTheory& theory) {
  Prediction prediction{2, "K rises with the context as n_eff and S say, the trained gate does not", {}, Ruling::not_decidable, ""};
  prediction.claims = {evidence_claim(context), theory_claim(theory), gate_claim(context)};
  std::tie(prediction.ruling, prediction.reason) = combine(prediction.claims);
  return prediction;
}

Prediction intervention_prediction() {
  const std::string reason = "it needs the gate replaced by K while the model runs; a sweep only watches";
  const Claim claim{"beyond the trained length the model predicts better with K in the gate's place, the more so the longer the text",
                    "none",
                    "none",
                    "none",
                    Ruling::not_tested,
                    reason};
  return {3, "K in the gate's place helps beyond the trained length", {claim}, Ruling::not_tested, reason};
}

}  // namespace

std::string_view in_words(Ruling ruling) {
  switch (ruling) {
    case Ruling::supported:
      return "supported";
    case Ruling::contradicted:
      return "contradicted";
    case Ruling::not_shown:
      return "not shown";
    case Ruling::not_decidable:
      return "not decidable";
    case Ruling::not_tested:
      return "not tested by a sweep";
  }
  ASSERT(false, "ruling {}", static_cast<int>(ruling));
}

Verdicts verdicts(const Context& context, const GainTheory& theory, const SinkVsK& sinks) {
  return {{sink_prediction(sinks), tracking_prediction(context, theory), intervention_prediction()}};
}

OrderedJson to_json(const Verdicts& verdicts) {
  OrderedJson rows = OrderedJson::array();
  for (const Prediction& prediction : verdicts.predictions) {
    OrderedJson row = {{"prediction", prediction.number}, {"title", prediction.title}, {"verdict", in_words(prediction.ruling)}};
    row["reason"] = prediction.reason;
    row["claims"] = OrderedJson::array();
    for (const Claim& claim : prediction.claims) {
      row["claims"].push_back({{"claim", claim.claim},
                               {"measurement", claim.measurement},
                               {"naive", claim.naive},
                               {"honest", claim.honest},
                               {"verdict", in_words(claim.ruling)},
                               {"reason", claim.reason}});
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace gainlens::analyses
