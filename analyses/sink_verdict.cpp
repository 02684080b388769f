#include "analyses/verdicts.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace gainlens::analyses {
namespace {

constexpr std::size_t measured_gain = 0, scaled_gain = 3, without_first = 4, without_sinks = 5;  // of gain_variants
static_assert(gain_variants[scaled_gain].name == "kalman_gain_scaled_half");
static_assert(gain_variants[without_first].name == "without_first_kalman_gain");
static_assert(gain_variants[without_sinks].name == "without_sinks_kalman_gain");

std::string in_words(std::string_view name, const PermutationTest& test) {
  if (!test.pearson.p) return fmt::format("{}: {}", name, test.pearson.p.reason());
  const bool by_chance = test.pearson.null_mean && std::abs(*test.pearson.null_mean) >= min_shown_null_mean;
  return fmt::format("{}: p = {:.3g} ({}{})", name, *test.pearson.p,
                     test.exact ? "all " + count_arrangements(test.arrangements)
                                : fmt::format("{} of {}", test.resamples, count_arrangements(test.arrangements)),
                     by_chance ? fmt::format("; r by chance {:+.3f}", *test.pearson.null_mean) : "");
}

std::string decision_in_words(const Maybe<SinkCorrelation>& correlation) {
  if (!correlation) return correlation.reason();
  const SinkDecision& decision = correlation->inference.decision;
  if (!decision.p) return decision.verdict;
  return fmt::format("{} ({}, p = {:.3g})", decision.verdict, relation_in_words(decision), *decision.p);
}

std::string verdict_of(const Maybe<SinkCorrelation>& correlation) {
  return correlation ? correlation->inference.decision.verdict : "not decidable";
}

/// The number of layers with a head among the points.
std::size_t layers_of(const SinkVsK& sinks) {
  std::set<std::int64_t> layers;
  for (const SinkPoint& point : sinks.points) layers.insert(point.layer);
  return layers.size();
}

std::string without_any_sink(const AnySinks& any) {
  return fmt::format(
      "no head is a sink: in none of {} heads does a key get {:g} or more of the attention of the queries that see it",
      any.all_heads, any.threshold);
}

/// Both directions must pass the same two controls: arithmetic couples BOS mass and K, with either sign.
std::pair<Ruling, std::string> rule_on_sinks(const SinkVsK& sinks, const std::optional<AnySinks>& any) {
  const auto& k = sinks.correlations[measured_gain];
  if (!k) return {Ruling::not_decidable, k.reason()};
  if (any && any->heads == 0) return {Ruling::not_decidable, without_any_sink(*any)};
  const std::string beside =
      any ? fmt::format("; {} of {} heads are sinks on some key, BOS or another", any->heads, any->all_heads) : "";
  if (sinks.apart.size() == layers_of(sinks))
    return {Ruling::not_decidable, "BOS is outside the window of every layer, so no head can be a sink on it" + beside};
  if (std::string reason = no_sink(sinks); !reason.empty()) return {Ruling::not_decidable, reason + beside};
  const SinkDecision& decision = k->inference.decision;
  if (!decision.p) return {Ruling::not_decidable, decision.p.reason()};
  if (decision.verdict == "not shown") {
    return {Ruling::not_shown, fmt::format("the {} does not show a relation (p = {:.3g})", decision.test, *decision.p)};
  }
  const bool rises = decision.verdict == "positive";
  const std::string found =
      fmt::format("by the {}, heads with more BOS mass have the {} K", decision.test, rises ? "larger" : "smaller");
  const auto &control = sinks.correlations[without_first], &scaled = sinks.correlations[scaled_gain];
  if (verdict_of(control) != decision.verdict) {
    return {Ruling::not_shown, fmt::format("{}, but arithmetic alone can cause this; K without key 0: {}", found,
                                           decision_in_words(control))};
  }
  if (verdict_of(scaled) == (rises ? "negative" : "positive")) {
    return {Ruling::not_shown, fmt::format("{}, but the sign depends on the scale of the values; scaled K: {}", found,
                                           decision_in_words(scaled))};
  }
  return {rises ? Ruling::supported : Ruling::contradicted,
          fmt::format("{}, and K without key 0, which removes the arithmetic, agrees", found)};
}

/// The same for sinks at any key. It stands beside the paper's claim, which is about BOS, and never supports nor
/// contradicts it. K without all sinks removes the arithmetic.
Claim total_mass_claim(const SinkVsK& sinks, const AnySinks& any) {
  Claim claim{
      "heads with more total sink mass (sinks at any key) have the larger K", "", "", "", Ruling::not_decidable, ""};
  const auto& k = sinks.total_correlations[measured_gain];
  if (!k) {
    claim.reason = k.reason();
    claim.measurement = claim.naive = claim.decisive = "none: " + claim.reason;
    return claim;
  }
  claim.measurement =
      fmt::format("Pearson {} over {} heads at {}, {} within layers", number_or_unknown(k->pooled.pearson),
                  k->pooled.points, list_lengths(sinks.lengths), number_or_unknown(k->within_layers.pearson));
  claim.naive = fmt::format("p = {} over all heads", number_or_unknown(k->pooled.pearson_naive_p, "{:.2g}"));
  const auto& control = sinks.total_correlations[without_sinks];
  claim.decisive =
      fmt::format("{}; K without all sinks: {}; scaled K: {}", in_words("block permutation", k->inference.blocks),
                  decision_in_words(control), decision_in_words(sinks.total_correlations[scaled_gain]));
  const SinkDecision& decision = k->inference.decision;
  if (any.heads == 0) {
    claim.reason = without_any_sink(any);
  } else if (!decision.p) {
    claim.reason = decision.p.reason();
  } else {
    claim.ruling = Ruling::not_shown;
    claim.reason =
        decision.verdict == "not shown"
            ? fmt::format("the {} does not show a relation (p = {:.3g})", decision.test, *decision.p)
            : fmt::format(
                  "by the {}, heads with more total sink mass have the {} K; K without all sinks, which "
                  "removes the arithmetic: {}. The paper's claim is about BOS alone",
                  decision.test, decision.verdict == "positive" ? "larger" : "smaller", decision_in_words(control));
  }
  return claim;
}

}  // namespace

Prediction sink_prediction(const SinkVsK& sinks, const Maybe<SinkCount>& published,
                           const std::optional<AnySinks>& any) {
  const auto& k = sinks.correlations[measured_gain];
  Claim claim{"heads with more BOS mass have the larger K", "", "", "", Ruling::not_decidable, ""};
  std::tie(claim.ruling, claim.reason) = rule_on_sinks(sinks, any);
  if (k) {
    claim.measurement =
        fmt::format("Pearson {} over {} heads at {}, {} within layers", number_or_unknown(k->pooled.pearson),
                    k->pooled.points, list_lengths(sinks.lengths), number_or_unknown(k->within_layers.pearson));
    claim.naive = fmt::format("p = {} over all heads", number_or_unknown(k->pooled.pearson_naive_p, "{:.2g}"));
    const SinkInference& tests = k->inference;
    claim.decisive = fmt::format(
        "{}; {}; K without key 0: {}; scaled K: {}", in_words("block permutation", tests.blocks),
        in_words("circular shift (decides nothing)", tests.shift), decision_in_words(sinks.correlations[without_first]),
        decision_in_words(sinks.correlations[scaled_gain]));
  } else {
    claim.measurement = claim.naive = claim.decisive = "none: " + k.reason();
  }
  if (published) claim.measurement += "; " + published_sinks_in_words(*published);
  if (!sinks.bos) claim.reason += "; no BOS token stands in front, so BOS means the text's first token";
  std::vector<Claim> claims = {claim};
  if (any) claims.push_back(total_mass_claim(sinks, *any));
  return {1, "Heads with more BOS mass have the larger K, in a model with sink heads", std::move(claims), claim.ruling,
          claim.reason};
}

}  // namespace gainlens::analyses
