#pragma once

#include "analyses/jackknife.h"
#include "analyses/permutation.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// The test that decides about a correlation, and its result.
struct SinkDecision {
  std::string_view test;  ///< "block permutation", or "none"
  Measured statistic;     ///< Pearson within layers
  Measured null_mean;     ///< mean of the statistic over all permutations
  Measured p;             ///< missing, with the reason, if the test cannot decide
  std::string verdict;    ///< "positive", "negative" (signs of statistic - null_mean), "not shown", "not decidable"
};

/// Tests and intervals of BOS mass against one gain that do not treat heads as independent.
struct SinkInference {
  PermutationTest blocks;
  PermutationTest shift;     ///< decides nothing
  Maybe<LayerRange> layers;  ///< ranges from leaving out layers
  Maybe<Jackknife> text;     ///< intervals from leaving out stretches of text
  SinkDecision decision;
};

/// Why the circular shift decides nothing, whatever its p.
inline constexpr std::string_view shift_decides_nothing =
    "a circular shift of the layers decides nothing, because it takes a common drift with depth for a relation";

/// Decides by the permutation of KV groups within layers if it gives a p, else not at all. The circular shift of layers
/// never decides: a common drift with depth makes it reject in up to 90% of models without any other relation.
/// Source: docs/inference.md, "Decision".
SinkDecision decide(const PermutationTest& blocks);

/// @param kind  [layer position] kind of attention
SinkInference sink_inference(const ChunkedPairs& pairs, const std::vector<std::string>& kind,
                             const Resampling& resampling);

/// A mean under the null hypothesis closer to 0 than this counts as 0 in texts: r is printed with three decimals.
inline constexpr double min_shown_null_mean = 0.0005;

/// "r = +0.770, +0.850 by chance". The second number is left out if it is 0, as with KV groups of one head.
std::string relation_in_words(const SinkDecision& decision);

OrderedJson to_json(const SinkInference& inference);

}  // namespace gainlens::analyses
