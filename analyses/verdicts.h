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
};

/// One of the paper's falsifiable predictions.
struct Prediction {
  int number;         ///< the paper's
  std::string title;  ///< in our words
  std::vector<Claim> claims;
  Ruling ruling;  ///< contradicted if a claim is; supported if all are; else not shown if a claim is, else not decidable
  std::string reason;
};

/// Source: bft.tex, app. "Empirical evidence", three falsifiable predictions.
struct Verdicts {
  std::vector<Prediction> predictions;  ///< 1, 2, 3
};

/// Prediction 1 needs K and K without key 0 to agree, and scaled K not to say the opposite: BOS mass and K are coupled by arithmetic, with
/// a sign that hangs on the scale of the values. Supported where K rises with BOS mass, contradicted where it falls, both under these
/// controls. A gate contradicts where at some length the 95% interval of its change lies beyond the equivalence margin; K follows its
/// formula where it beats the constant in every split and is never off by more than theory_margin.
Verdicts verdicts(const Context& context, const GainTheory& theory, const SinkVsK& sinks);
OrderedJson to_json(const Verdicts& verdicts);

}  // namespace gainlens::analyses
