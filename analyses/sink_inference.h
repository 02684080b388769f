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
  std::string_view test;  ///< "block permutation", "circular shift", or "none"
  Measured statistic;     ///< Pearson; within layers for the block permutation, pooled for the shift
  Measured null_mean;     ///< mean of the statistic over all permutations
  Measured p;             ///< missing, with both reasons, if neither test can decide
  std::string verdict;    ///< "positive", "negative" (signs of statistic - null_mean), "not shown", "not decidable"
};

/// Tests and intervals of BOS mass against one gain that do not treat heads as independent.
struct SinkInference {
  PermutationTest blocks;
  PermutationTest shift;
  Maybe<Jackknife> layers;  ///< intervals from leaving out layers
  Maybe<Jackknife> text;    ///< intervals from leaving out stretches of text
  SinkDecision decision;
};

/// Decides by the permutation of KV groups within layers if it gives a p, else by the circular shift if that does, else
/// not at all. Source: docs/inference.md, "Decision".
SinkDecision decide(const PermutationTest& blocks, const PermutationTest& shift);

/// @param kind  [layer position] kind of attention
SinkInference sink_inference(const ChunkedPairs& pairs, const std::vector<std::string>& kind,
                             const Resampling& resampling);

/// A mean under the null hypothesis closer to 0 than this counts as 0 in texts: r is printed with three decimals.
inline constexpr double least_shown_null_mean = 0.0005;

/// "r = +0.770, +0.850 by chance". The second number is left out if it is 0, as with KV groups of one head.
std::string relation_in_words(const SinkDecision& decision);

OrderedJson to_json(const SinkInference& inference);

}  // namespace gainlens::analyses
