#pragma once

#include "analyses/context.h"
#include "analyses/gain_theory.h"
#include "analyses/sink_vs_k.h"

#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// What a run says about a prediction.
enum class Ruling {
  supported,      ///< the honest test says so, controls included
  contradicted,   ///< it says the opposite
  not_shown,      ///< it could have said so and does not
  not_decidable,  ///< no test that could decide has the data it needs
  not_tested      ///< a sweep does not test it
};
/// "supported", "contradicted", "not shown", "not decidable", "not tested by a sweep".
std::string_view in_words(Ruling ruling);

/// One claim of a prediction: a row of the verdict table. Every text is a sentence or less, plain UTF-8.
struct Claim {
  std::string claim;
  std::string measurement;  ///< what this run measured
  std::string naive;        ///< inference that takes heads, layers and queries as independent
  std::string honest;       ///< inference that does not, or why it is refused
  Ruling ruling;
  std::string reason;  ///< of the ruling
  /// Against the claim: at most `significance` where it is contradicted, Holm-adjusted if it joins several tests;
  /// missing where no test could speak against it.
  Measured contradiction_p = Measured::none("no test speaks against the claim");
};

/// One of the paper's falsifiable predictions.
struct Prediction {
  int number;         ///< the paper's
  std::string title;  ///< in our words
  std::vector<Claim> claims;
  /// Supported if all claims are. Contradicted if a claim is after the correction for the number of claims that could
  /// be (Holm). Else not shown if a claim is not shown or contradicted by itself alone, else not decidable.
  Ruling ruling;
  std::string reason;
};

/// Source: bft.tex, app. "Empirical evidence", three falsifiable predictions.
struct Verdicts {
  std::vector<Prediction> predictions;  ///< 1, 2, 3
};

/// Prediction 1 needs K and K without key 0 to agree, and scaled K not to say the opposite: BOS mass and K are coupled
/// by arithmetic, with a sign that hangs on the scale of the values. Supported where K rises with BOS mass,
/// contradicted where it falls, both under these controls. The gate is flat, and K follows its formula, where the
/// change and the error are equivalent to 0 within their margins at every length above the shortest, each at 5%;
/// contradicted where at some length they are shown to lie beyond the margin, at 5% over all lengths (Holm).
Verdicts verdicts(const Context& context, const GainTheory& theory, const SinkVsK& sinks);
OrderedJson to_json(const Verdicts& verdicts);

}  // namespace gainlens::analyses
