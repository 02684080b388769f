#pragma once

#include "analyses/context.h"
#include "analyses/gain_theory.h"
#include "analyses/measured.h"
#include "analyses/published_sinks.h"
#include "analyses/sink_keys.h"
#include "analyses/sink_vs_k.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// What a run says about a prediction.
enum class Ruling {
  supported,      ///< the test says so, and so do the controls
  contradicted,   ///< the test says the opposite
  not_shown,      ///< the test could have said so, and does not
  not_decidable,  ///< no test has the data that it needs
  not_tested      ///< a sweep does not test it
};
/// "supported", "contradicted", "not shown", "not decidable", "not tested by a sweep".
std::string_view in_words(Ruling ruling);

/// One claim of a prediction: a row of the verdict table. Every text is at most a sentence, in plain UTF-8.
struct Claim {
  std::string claim;
  std::string measurement;  ///< what this run measured
  std::string naive;        ///< inference that treats heads, layers and queries as independent
  std::string decisive;     ///< inference that does not, or why it is not possible
  Ruling ruling;
  std::string reason;  ///< why this ruling
  /// p of the test against the claim, Holm-adjusted if it joins several tests: at most `significance` if the claim is
  /// contradicted. Missing if no test could contradict it.
  Measured contradiction_p = Measured::none("no test could contradict the claim");
};

/// One of the paper's falsifiable predictions.
struct Prediction {
  int number;         ///< the paper's
  std::string title;  ///< in our words
  std::vector<Claim> claims;
  /// Supported if all claims are. Contradicted if a claim still is after Holm's correction for the number of claims
  /// that could be. Else not shown, if a claim is not shown or is contradicted only before the correction. Else not
  /// decidable.
  Ruling ruling;
  std::string reason;
};

/// Source: bft.tex, app. "Empirical evidence", three falsifiable predictions.
struct Verdicts {
  std::vector<Prediction> predictions;  ///< 1, 2, 3
};

/// Heads that are sinks on any key, whether BOS or another token, at the lengths of a SinkVsK.
struct AnySinks {
  double threshold;   ///< of the column mean
  std::size_t heads;  ///< that have a sink in some chunk
  std::size_t all_heads;
};
AnySinks any_sinks(const SinkKeys& keys, const SinkVsK& sinks);

/// Rulings on the three predictions.
/// - Prediction 1 is supported if K rises with BOS mass, and contradicted if it falls. BOS mass and K are coupled by
///   arithmetic, with a sign that depends on the scale of the values. In both cases, therefore, K without key 0 must
///   agree, and scaled K must not say the opposite. It is not decidable if no head has a BOS mass above the smaller of
///   sink_thresholds: a model without sinks says nothing about sinks.
/// - Growth of the evidence is judged on the deep layers if all layers are of one kind of attention. Otherwise it is
///   judged on all layers of the kind with the longest window, and the other kinds are named beside it. Lengths at
///   which something else than the context changes are left out (see Growth).
/// - The gate is flat, and K follows its formula, if the change and the error are equivalent to 0 within their margins
///   at every length above the shortest, each at 5%. Contradicted if at some length they are shown to be beyond the
///   margin, at 5% over all lengths (Holm).
/// @param context  of the deep layers   @param kinds  see context_by_attention(); empty if all layers are of one kind
/// @param published  stands beside the sinks at the run's longest lengths; it decides nothing
/// @param any        of a run that looked for sinks on every key: without one, prediction 1 is not decidable
Verdicts verdicts(const Context& context, const std::vector<KindContext>& kinds, const GainTheory& theory,
                  const SinkVsK& sinks, const Maybe<SinkCount>& published = Maybe<SinkCount>::none("not counted"),
                  const std::optional<AnySinks>& any = std::nullopt);
OrderedJson to_json(const Verdicts& verdicts);

/// The ruling on prediction 1: whether heads with more BOS mass have the larger K. The parameters and the rule are
/// those of verdicts(). With `any` a second claim, about sinks on any key, stands beside the paper's and decides
/// nothing.
Prediction sink_prediction(const SinkVsK& sinks, const Maybe<SinkCount>& published, const std::optional<AnySinks>& any);

/// The number in a format of fmt, or "not known". The reason stands elsewhere in the claim.
inline std::string number_or_unknown(const Measured& value, const char* format = "{:+.3f}") {
  return value ? fmt::format(fmt::runtime(format), *value) : "not known";
}

}  // namespace gainlens::analyses
