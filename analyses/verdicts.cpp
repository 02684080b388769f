#include "analyses/verdicts.h"

#include "analyses/holm.h"
#include "core/check.h"
#include "core/quantity.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string_view>
#include <tuple>

namespace gainlens::analyses {
namespace {

constexpr const char* no_second_length = "only one length has a complete chunk; a change needs a second one";

std::string percent(const Measured& share) {
  return share ? fmt::format("{:.2f}%", 100 * *share) : "not known";
}

std::string shown(const Maybe<Interval>& interval, const char* format = "[{:+.3f}, {:+.3f}]") {
  return interval ? fmt::format(fmt::runtime(format), interval->low, interval->high)
                  : "not known (" + interval.reason() + ")";
}

std::string shown_mean(const Maybe<Aggregate>& aggregate, const char* format) {
  return aggregate ? fmt::format(fmt::runtime(format), aggregate->mean) : "not known";
}

/// The caveat for consecutive chunks: lengths share only a part of their text, and the rest may cause a change.
constexpr std::string_view unlike_texts = "lengths compared on partly different text";

/// Adds this caveat to a claim about changes between lengths.
void add_pairing(Claim& claim, const Context& context) {
  if (context.paired || context.points.size() < 2) return;
  claim.decisive += fmt::format("; {}", unlike_texts);
  if (claim.ruling == Ruling::supported || claim.ruling == Ruling::contradicted)
    claim.reason += fmt::format("; {}", unlike_texts);
}

/// The caveat for lengths that the model was not made for.
void add_extrapolation(Claim& claim, const Context& context) {
  std::vector<std::string> lengths;
  for (const ContextPoint& point : context.points) {
    if (point.extrapolated) lengths.push_back(format_count(point.length.tokens));
  }
  if (lengths.empty()) return;
  const std::string caveat =
      fmt::format("; among the lengths are some beyond the model's positions: {}", fmt::join(lengths, ", "));
  claim.decisive += caveat;
  if (claim.ruling == Ruling::supported || claim.ruling == Ruling::contradicted) claim.reason += caveat;
}

/// "1k to 4k tokens, n_eff 18.1 to 16.8, ln lambda_obs -0.014; set apart: 256 (...)"
std::string growth_in_words(const Context& context) {
  const Growth& growth = context.growth;
  const std::string apart = set_apart_in_words(context);
  const std::string left_out = apart.empty() ? "" : "; set apart: " + apart;
  if (!growth.judged()) return fmt::format("{}{}", growth.log_precision.mean.reason(), left_out);
  const ContextPoint &first = context.points[growth.first], &last = context.points[growth.last];
  return fmt::format("{} to {} tokens: n_eff {} to {}, ln lambda_obs {}{}", format_count(first.length.tokens),
                     format_count(last.length.tokens), shown_mean(first.n_eff, "{:.2f}"),
                     shown_mean(last.n_eff, "{:.2f}"), number_or_unknown(growth.log_precision.mean), left_out);
}

/// What the test says about the growth in one set of layers, without the layers' name.
std::pair<Ruling, std::string> rule_on_growth(const Growth& growth) {
  const Change& change = growth.log_precision;
  if (!change.flat.difference_p) return {Ruling::not_decidable, change.flat.difference_p.reason()};
  if (*change.flat.difference_p > significance)
    return {Ruling::not_shown, "the interval of the change of ln lambda_obs contains 0"};
  return *change.mean > 0
             ? std::pair{Ruling::supported, std::string("ln lambda_obs rises, by more than the noise of the chunks")}
             : std::pair{Ruling::contradicted, std::string("ln lambda_obs falls")};
}

std::string layers_named(const KindContext& kind) {
  return fmt::format("{} layers", kind.attention);
}

/// Adds the other kinds of attention, which decide nothing.
void add_other_kinds(Claim& claim, const std::vector<KindContext>& kinds) {
  const KindContext& deciding = widest(kinds);
  claim.measurement = fmt::format("{}, {}", layers_named(deciding), claim.measurement);
  claim.reason = fmt::format("{}: {}", layers_named(deciding), claim.reason);
  for (const KindContext& kind : kinds) {
    if (&kind == &deciding) continue;
    claim.measurement += fmt::format("; {}, {}", layers_named(kind), growth_in_words(kind.context));
    const auto [ruling, reason] = rule_on_growth(kind.context.growth);
    claim.decisive +=
        fmt::format("; {} decide nothing: {}", layers_named(kind),
                    ruling == Ruling::not_decidable ? reason : shown(kind.context.growth.log_precision.interval));
    claim.reason += fmt::format("; {}: {} ({})", layers_named(kind), in_words(ruling), reason);
  }
}

/// Judged on the deep layers if all layers are of one kind of attention, else on all layers of the kind with the
/// longest window.
Claim evidence_claim(const Context& deep, const std::vector<KindContext>& kinds) {
  const Context& context = kinds.empty() ? deep : widest(kinds).context;
  const ContextPoint& only = context.points.front();
  const Growth& growth = context.growth;
  Claim claim{"the evidence grows with the context", "", "", "", Ruling::not_decidable, ""};
  std::tie(claim.ruling, claim.reason) = rule_on_growth(growth);
  claim.measurement = context.points.size() < 2 ? fmt::format("{} tokens: n_eff {}", format_count(only.length.tokens),
                                                              shown_mean(only.n_eff, "{:.2f}"))
                                                : growth_in_words(context);
  if (!growth.judged()) {
    claim.naive = claim.decisive = "none: " + claim.reason;
  } else {
    const ContextPoint& last = context.points[growth.last];
    const Maybe<Aggregate>& first = context.points[growth.first].observation_precision;
    const Measured deviation = last.observation_precision && first && last.observation_precision->deviation
                                   ? Measured(*last.observation_precision->deviation / first->mean)
                                   : Measured::none("not known");
    claim.naive =
        fmt::format("lambda_obs multiplied by {}, standard deviation over cells {}",
                    number_or_unknown(growth.precision_ratio, "{:.3f}"), number_or_unknown(deviation, "{:.3f}"));
    claim.decisive =
        fmt::format("95% interval {} over {}", shown(growth.log_precision.interval), growth.log_precision.basis);
    const Change& change = growth.log_precision;
    if (change.flat.difference_p) claim.contradiction_p = *change.mean < 0 ? *change.flat.difference_p : 1.0;
  }
  if (kinds.size() > 1) add_other_kinds(claim, kinds);
  if (growth.judged()) add_pairing(claim, context);
  return claim;
}

/// The tests at all lengths above the shortest, joined.
struct OverLengths {
  std::vector<std::size_t> lengths;  // lengths with a test
  std::vector<double> adjusted;      // their p, adjusted by Holm

  /// The length with the smallest p.
  std::size_t first() const {
    return lengths[std::size_t(std::min_element(adjusted.begin(), adjusted.end()) - adjusted.begin())];
  }
  double least() const { return *std::min_element(adjusted.begin(), adjusted.end()); }
  bool any() const { return !lengths.empty() && least() <= significance; }
  std::string in_words() const {
    return lengths.size() == 1 ? "" : fmt::format(" (p = {:.2g}, Holm over {} lengths)", least(), lengths.size());
  }
};

template <typename Lengths, typename P>
OverLengths over_lengths(const Lengths& lengths, P&& p) {
  OverLengths result;
  std::vector<double> tests;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Measured& test = p(lengths[i]);
    if (!test) continue;
    result.lengths.push_back(i);
    tests.push_back(*test);
  }
  result.adjusted = holm(tests);
  return result;
}

std::string signed_percent(double share) {
  return fmt::format("{:+.2f}%", 100 * share);
}

std::string shown_error(const TheoryError& length) {
  return fmt::format("{} [{}, {}] at {} tokens", signed_percent(length.error), signed_percent(length.interval.low),
                     signed_percent(length.interval.high), format_count(length.tokens));
}

/// "Within the margin at every length" needs every test to pass, so it needs no correction for their number. "Beyond
/// the margin at some length" needs only one, so it does.
void rule_on_theory(const TheoryEquivalence& test, Claim& claim) {
  const OverLengths beyond =
      over_lengths(test.lengths, [](const TheoryError& length) { return length.log_ratio.exceeds_p; });
  claim.contradiction_p = beyond.least();
  const bool within = std::all_of(test.lengths.begin(), test.lengths.end(), [](const TheoryError& length) {
    return length.log_ratio.flatness == Flatness::equivalent;
  });
  if (beyond.any()) {
    claim.ruling = Ruling::contradicted;
    claim.reason = fmt::format("on text like this the formula is off by more than {:g}%: {}{}", 100 * test.margin,
                               shown_error(test.lengths[beyond.first()]), beyond.in_words());
  } else if (!within) {
    claim.ruling = Ruling::not_shown;
    claim.reason =
        fmt::format("on text like this the formula is not shown to be off by less than {:g}% at every length: {}",
                    100 * test.margin, shown_error(test.worst()));
  } else {
    claim.ruling = Ruling::supported;
    claim.reason =
        fmt::format("on text like this the formula is off by less than {:g}% at every length", 100 * test.margin);
    const bool constant = std::all_of(test.lengths.begin(), test.lengths.end(), [&](const TheoryError& length) {
      return std::abs(length.constant_error) < test.margin;
    });
    if (constant) claim.reason += "; so is a constant K, because K hardly changes here";
  }
}

Claim theory_claim(const GainTheory& theory) {
  Claim claim{"K follows from n_eff and S with one lambda",
              fmt::format("largest relative error {} (constant K: {})", percent(theory.max_relative_error),
                          percent(theory.max_constant_error)),
              "fitted and judged on the same chunks",
              "",
              Ruling::not_decidable,
              ""};
  if (!theory.unseen) {
    claim.reason = theory.unseen.reason();
    claim.decisive = "none: " + claim.reason;
    return claim;
  }
  const TheoryEquivalence& test = *theory.unseen;
  claim.decisive = fmt::format(
      "on unseen text, from {} chunks: largest error {} (90% interval), margin ±{:g}% (the paper: {:g}%); on chunks "
      "left out of the fit: largest error {} on average (constant {}), skill {}",
      test.chunks, shown_error(test.worst()), 100 * test.margin, 100 * paper_theory_error,
      percent(test.left_out.relative), percent(test.left_out.constant),
      number_or_unknown(test.left_out.skill, "{:.2f}"));
  rule_on_theory(test, claim);
  return claim;
}

/// Rules as for the theory. A change contradicts only if it is shown to exceed the margin: a smaller change counts as
/// flat.
void rule_on_gate(const Context& context, Claim& claim) {
  const auto rule = [&](Ruling ruling, std::string reason) {
    claim.ruling = ruling;
    claim.reason = std::move(reason);
  };
  if (context.points.size() < 2) return rule(Ruling::not_decidable, no_second_length);
  const double margin = context.equivalence_margin;
  const std::span<const ContextPoint> longer = std::span(context.points).subspan(1);
  const OverLengths beyond =
      over_lengths(longer, [](const ContextPoint& point) { return point.logit_gate.flat.exceeds_p; });
  if (!beyond.lengths.empty()) claim.contradiction_p = beyond.least();
  if (beyond.any()) {
    const ContextPoint& point = longer[beyond.first()];
    return rule(Ruling::contradicted,
                fmt::format("logit(gate) changes by more than {:g} at {} tokens: 95% interval {}{}", margin,
                            format_count(point.length.tokens), shown(point.logit_gate.interval), beyond.in_words()));
  }
  const auto of = [&](Flatness flatness) {
    return std::find_if(longer.begin(), longer.end(),
                        [&](const ContextPoint& point) { return point.logit_gate.flat.flatness == flatness; });
  };
  if (const auto unknown = of(Flatness::unknown); unknown != longer.end()) {
    return rule(Ruling::not_decidable, unknown->logit_gate.flat.p.reason());
  }
  if (of(Flatness::changes) == longer.end() && of(Flatness::not_shown) == longer.end()) {
    return rule(Ruling::supported, in_words(longer.back().logit_gate.flat) + " at every length");
  }
  const OverLengths changes =
      over_lengths(longer, [](const ContextPoint& point) { return point.logit_gate.flat.difference_p; });
  if (changes.any()) {
    return rule(Ruling::not_shown,
                fmt::format("logit(gate) changes at {} tokens{}, but is not shown to change by more than {:g}",
                            format_count(longer[changes.first()].length.tokens), changes.in_words(), margin));
  }
  rule(Ruling::not_shown, fmt::format("not shown to be flat within ±{:g} at every length", margin));
}

Claim gate_claim(const Context& context) {
  const ContextPoint &first = context.points.front(), &last = context.points.back();
  Claim claim{"the trained gate stays flat", "", "", "", Ruling::not_decidable, ""};
  rule_on_gate(context, claim);
  if (!last.gate) {
    claim.measurement = claim.naive = claim.decisive = "none: " + last.gate.reason();
    if (claim.ruling == Ruling::not_decidable) claim.reason = last.gate.reason();
    return claim;
  }
  if (context.points.size() < 2) {
    claim.measurement =
        fmt::format("{} tokens: gate {}", format_count(first.length.tokens), shown_mean(first.gate, "{:.3f}"));
    claim.naive = claim.decisive = fmt::format("none: {}", no_second_length);
    return claim;
  }
  claim.measurement = fmt::format("gate {} to {}, logit(gate) {}", shown_mean(first.gate, "{:.3f}"),
                                  shown_mean(last.gate, "{:.3f}"), number_or_unknown(last.logit_gate.mean));
  claim.naive = fmt::format("standard deviation over cells {}", number_or_unknown(last.gate->deviation, "{:.3f}"));
  claim.decisive = fmt::format("90% interval {} over {}, margin ±{:g}: {}; minus the change of ln lambda_obs: {}",
                               shown(last.logit_gate.flat.interval), last.logit_gate.basis, context.equivalence_margin,
                               in_words(last.logit_gate.flat), shown(last.difference.interval));
  add_pairing(claim, context);
  add_extrapolation(claim, context);
  return claim;
}

/// The ruling on a prediction from its claims. Supported if every claim is, which needs no correction; contradicted if
/// one claim is, which does.
std::pair<Ruling, std::string> combine(const std::vector<Claim>& claims) {
  std::vector<std::size_t> tested;
  std::vector<double> against;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (!claims[i].contradiction_p) continue;
    tested.push_back(i);
    against.push_back(*claims[i].contradiction_p);
  }
  const std::vector<double> adjusted = holm(against);
  const auto of = [](const Claim& claim) { return fmt::format("{}: {}", claim.claim, claim.reason); };
  for (std::size_t i = 0; i < tested.size(); ++i) {
    if (claims[tested[i]].ruling == Ruling::contradicted && adjusted[i] <= significance)
      return {Ruling::contradicted, of(claims[tested[i]])};
  }
  for (std::size_t i = 0; i < tested.size(); ++i) {
    if (claims[tested[i]].ruling != Ruling::contradicted) continue;
    return {
        Ruling::not_shown,
        fmt::format(
            "{}; that is one of {} claims that could be contradicted, and p = {:.2g} after Holm's correction for them",
            of(claims[tested[i]]), tested.size(), adjusted[i])};
  }
  for (const Ruling worse : {Ruling::not_shown, Ruling::not_decidable}) {
    const auto claim =
        std::find_if(claims.begin(), claims.end(), [&](const Claim& each) { return each.ruling == worse; });
    if (claim != claims.end()) return {worse, of(*claim)};
  }
  return {Ruling::supported, "every claim is supported"};
}

Prediction tracking_prediction(const Context& context, const std::vector<KindContext>& kinds,
                               const GainTheory& theory) {
  Prediction prediction{
      2,
      "The evidence behind K rises with the context, K follows its formula, the trained gate stays flat",
      {},
      Ruling::not_decidable,
      ""};
  prediction.claims = {evidence_claim(context, kinds), theory_claim(theory), gate_claim(context)};
  if (theory.unseen) add_extrapolation(prediction.claims[1], context);
  std::tie(prediction.ruling, prediction.reason) = combine(prediction.claims);
  return prediction;
}

Prediction intervention_prediction() {
  const std::string reason = "it needs the gate replaced by K while the model runs; a sweep only measures";
  const Claim claim{
      "beyond the trained length the model predicts better with K in place of the gate, and more so for longer text",
      "none",
      "none",
      "none",
      Ruling::not_tested,
      reason};
  return {3, "K in place of the gate helps beyond the trained length", {claim}, Ruling::not_tested, reason};
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

AnySinks any_sinks(const SinkKeys& keys, const SinkVsK& sinks) {
  std::set<std::pair<std::int64_t, std::int64_t>> heads;
  for (const SinkKey& key : keys.keys) {
    const auto same = [&](const Length& length) { return length.tokens == key.length; };
    if (std::any_of(sinks.lengths.begin(), sinks.lengths.end(), same)) heads.emplace(key.layer, key.head);
  }
  return {keys.threshold, heads.size(), sinks.points.size()};
}

Verdicts verdicts(const Context& context, const std::vector<KindContext>& kinds, const GainTheory& theory,
                  const SinkVsK& sinks, const Maybe<SinkCount>& published, const std::optional<AnySinks>& any) {
  return {
      {sink_prediction(sinks, published, any), tracking_prediction(context, kinds, theory), intervention_prediction()}};
}

OrderedJson to_json(const Verdicts& verdicts) {
  OrderedJson rows = OrderedJson::array();
  for (const Prediction& prediction : verdicts.predictions) {
    OrderedJson row = {
        {"prediction", prediction.number}, {"title", prediction.title}, {"verdict", in_words(prediction.ruling)}};
    row["reason"] = prediction.reason;
    row["claims"] = OrderedJson::array();
    for (const Claim& claim : prediction.claims) {
      row["claims"].push_back({{"claim", claim.claim},
                               {"measurement", claim.measurement},
                               {"naive", claim.naive},
                               {"decisive_test", claim.decisive},
                               {"verdict", in_words(claim.ruling)},
                               {"reason", claim.reason}});
      put(row["claims"].back(), "contradiction_p", claim.contradiction_p);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace gainlens::analyses
