#include "analyses/verdicts.h"

#include "core/quantity.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <tuple>

namespace gainlens::analyses {
namespace {

constexpr std::size_t measured_gain = 0, scaled_gain = 3, without_first = 4;  // among gain_variants
static_assert(gain_variants[scaled_gain].name == "kalman_gain_scaled_half");
static_assert(gain_variants[without_first].name == "without_first_kalman_gain");
constexpr const char* no_second_length = "one length with a complete chunk; a change needs a second";

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

std::string verdict_of(const Maybe<SinkCorrelation>& correlation) {
  return correlation ? correlation->inference.decision.verdict : "not decidable";
}

/// Both directions have to survive the same two controls: BOS mass and K are coupled by arithmetic, with either sign.
std::pair<Ruling, std::string> rule_on_sinks(const SinkVsK& sinks) {
  const auto& k = sinks.correlations[measured_gain];
  if (!k) return {Ruling::not_decidable, k.reason()};
  const SinkDecision& decision = k->inference.decision;
  if (!decision.p) return {Ruling::not_decidable, decision.p.reason()};
  if (decision.verdict == "not shown") {
    return {Ruling::not_shown, fmt::format("the {} does not show a relation (p = {:.2g})", decision.test, *decision.p)};
  }
  const bool rises = decision.verdict == "positive";
  const std::string found = fmt::format("by the {}, sink heads have the {} K", named(decision), rises ? "larger" : "smaller");
  const auto &control = sinks.correlations[without_first], &scaled = sinks.correlations[scaled_gain];
  if (verdict_of(control) != decision.verdict) {
    return {Ruling::not_shown,
            fmt::format("{}, which arithmetic can do by itself; K without key 0: {}", found, decision_in_words(control))};
  }
  if (verdict_of(scaled) == (rises ? "negative" : "positive")) {
    return {Ruling::not_shown,
            fmt::format("{}, but the sign hangs on the scale of the values: scaled K: {}", found, decision_in_words(scaled))};
  }
  return {rises ? Ruling::supported : Ruling::contradicted,
          fmt::format("{}, and K without key 0, where the arithmetic is taken out, agrees", found)};
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
    claim.honest = fmt::format("{}; {}; K without key 0: {}; scaled K: {}", in_words("block permutation", honest.blocks),
                               in_words("circular shift", honest.shift), decision_in_words(sinks.correlations[without_first]),
                               decision_in_words(sinks.correlations[scaled_gain]));
  } else {
    claim.measurement = claim.naive = claim.honest = "none: " + k.reason();
  }
  if (!sinks.bos) claim.reason += "; key 0 is ordinary text here";
  return {1, "Sink heads are those with a gain near 1", {claim}, claim.ruling, claim.reason};
}

/// Of consecutive chunks: the lengths share a part of their text, and what differs between them may be the rest of it.
constexpr std::string_view unlike_texts = "lengths compared on partly different text";

/// Says of a claim about changes between lengths what its pairs are worth.
void add_pairing(Claim& claim, const Context& context) {
  if (context.paired || context.points.size() < 2) return;
  claim.honest += fmt::format("; {}", unlike_texts);
  if (claim.ruling == Ruling::supported || claim.ruling == Ruling::contradicted) claim.reason += fmt::format("; {}", unlike_texts);
}

Claim evidence_claim(const Context& context) {
  const ContextPoint &first = context.points.front(), &last = context.points.back();
  const Change& change = last.log_precision;
  Claim claim{"the evidence grows with the context", "", "", "", Ruling::not_decidable, ""};
  if (context.points.size() < 2) {
    claim.reason = no_second_length;
    claim.measurement = fmt::format("{} tokens: n_eff {}", format_count(first.length.tokens), shown_mean(first.n_eff, "{:.2f}"));
    claim.naive = claim.honest = "none: " + claim.reason;
    return claim;
  }
  claim.measurement =
      fmt::format("{} to {} tokens: n_eff {} to {}, ln lambda_obs {}", format_count(first.length.tokens), format_count(last.length.tokens),
                  shown_mean(first.n_eff, "{:.2f}"), shown_mean(last.n_eff, "{:.2f}"), shown(change.mean));
  claim.naive = fmt::format("lambda_obs multiplied by {}, standard deviation over cells {}", shown(last.precision_ratio, "{:.3f}"),
                            shown(last.precision_ratio_deviation, "{:.3f}"));
  claim.honest = fmt::format("95% interval {} over {}", shown(change.interval), change.basis);
  if (!change.flat.difference_p) {
    claim.reason = change.flat.difference_p.reason();
  } else if (*change.flat.difference_p > significance) {
    claim.ruling = Ruling::not_shown;
    claim.reason = "the interval of the change of ln lambda_obs holds 0";
  } else {
    claim.ruling = *change.mean > 0 ? Ruling::supported : Ruling::contradicted;
    claim.reason = *change.mean > 0 ? "ln lambda_obs rises beyond the noise of the chunks" : "ln lambda_obs falls";
  }
  add_pairing(claim, context);
  return claim;
}

/// Of a split that has a skill. Beating the constant is not enough: a formula that is off by more than the margin is no law.
std::pair<Ruling, std::string> rule_on_theory(const SplitHalf& split) {
  if (split.skill->largest < 0) return {Ruling::contradicted, "on unseen chunks the constant K is better in every split"};
  if (!(split.skill->least > 0)) return {Ruling::not_shown, "on unseen chunks it beats the constant in some splits alone"};
  const double error = split.max_relative_error.largest;
  if (error > theory_margin) {
    return {Ruling::not_shown,
            fmt::format("on unseen chunks better than the constant in every split, but off by up to {}, beyond the stated {:g}%",
                        percent(error), 100 * theory_margin)};
  }
  return {Ruling::supported,
          fmt::format("on unseen chunks it beats the constant in every split and is off by {} at most, within the stated {:g}%",
                      percent(error), 100 * theory_margin)};
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
  const OverSplits &error = split.max_relative_error, &skill = *split.skill;
  claim.honest = fmt::format("split-half ({} splits): largest error {} [{}, {}], margin {:g}%; constant {}, skill {:.2f} [{:.2f}, {:.2f}]",
                             split.splits, percent(error.mean), percent(error.least), percent(error.largest), 100 * theory_margin,
                             percent(split.max_constant_error.mean), skill.mean, skill.least, skill.largest);
  std::tie(claim.ruling, claim.reason) = rule_on_theory(split);
  return claim;
}

/// Whether the 95% interval of a change lies beyond the margin, wholly and on one side.
bool beyond_margin(const Change& change, double margin) {
  return change.interval && (change.interval->low > margin || change.interval->high < -margin);
}

/// Flat at every length above the shortest: each test must pass, which needs no correction for their number. A change is no contradiction
/// until it is shown to exceed the margin: a smaller one counts as flat.
std::pair<Ruling, std::string> rule_on_gate(const Context& context) {
  if (context.points.size() < 2) return {Ruling::not_decidable, no_second_length};
  const double margin = context.equivalence_margin;
  const std::span<const ContextPoint> longer = std::span(context.points).subspan(1);
  for (const ContextPoint& point : longer) {
    if (!beyond_margin(point.logit_gate, margin)) continue;
    return {Ruling::contradicted, fmt::format("logit(gate) changes by more than {:g} at {} tokens: 95% interval {}", margin,
                                              format_count(point.length.tokens), shown(point.logit_gate.interval))};
  }
  const auto of = [&](Flatness flatness) {
    return std::find_if(longer.begin(), longer.end(),
                        [&](const ContextPoint& point) { return point.logit_gate.flat.flatness == flatness; });
  };
  if (const auto unknown = of(Flatness::unknown); unknown != longer.end()) {
    return {Ruling::not_decidable, unknown->logit_gate.flat.p.reason()};
  }
  if (const auto changed = of(Flatness::changes); changed != longer.end()) {
    return {Ruling::not_shown, fmt::format("logit(gate) changes at {} tokens, but is not shown to change by more than {:g}",
                                           format_count(changed->length.tokens), margin)};
  }
  if (of(Flatness::not_shown) != longer.end()) {
    return {Ruling::not_shown, fmt::format("not shown to be flat within ±{:g} at every length", margin)};
  }
  return {Ruling::supported, in_words(longer.back().logit_gate.flat) + " at every length"};
}

Claim gate_claim(const Context& context) {
  const ContextPoint &first = context.points.front(), &last = context.points.back();
  Claim claim{"the trained gate stays flat", "", "", "", Ruling::not_decidable, ""};
  std::tie(claim.ruling, claim.reason) = rule_on_gate(context);
  if (!last.gate) {
    claim.measurement = claim.naive = claim.honest = "none: " + last.gate.reason();
    if (claim.ruling == Ruling::not_decidable) claim.reason = last.gate.reason();
    return claim;
  }
  claim.measurement = fmt::format("gate {} to {}, logit(gate) {}", shown_mean(first.gate, "{:.3f}"), shown_mean(last.gate, "{:.3f}"),
                                  shown(last.logit_gate.mean));
  claim.naive = fmt::format("standard deviation over cells {}", shown(last.gate->deviation, "{:.3f}"));
  claim.honest =
      fmt::format("90% interval {} over {}, margin ±{:g}: {}; less ln lambda_obs: {}", shown(last.logit_gate.flat.interval),
                  last.logit_gate.basis, context.equivalence_margin, in_words(last.logit_gate.flat), shown(last.difference.interval));
  add_pairing(claim, context);
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
  Prediction prediction{
      2, "The evidence behind K rises with the context, K follows its formula, the trained gate stays flat", {}, Ruling::not_decidable, ""};
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
