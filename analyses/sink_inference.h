#pragma once

#include "analyses/jackknife.h"
#include "analyses/permutation.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// The test that decides about a correlation, and what it says.
struct SinkDecision {
  std::string_view test;  ///< "block permutation", "circular shift", or "none"
  Measured statistic;     ///< Pearson; within layers for the block permutation, pooled for the shift
  Measured null_mean;   ///< mean of the statistic over all arrangements: what the slots of KV groups, or head numbers,
                        ///< share makes it
  Measured p;           ///< or why both tests are refused
  std::string verdict;  ///< "positive", "negative" (signs of statistic - null_mean), "not shown", "not decidable"
};

/// What stands beside the naive p of BOS mass against one gain.
struct SinkInference {
  PermutationTest blocks;
  PermutationTest shift;
  Maybe<Jackknife> layers;  ///< intervals from leaving out layers
  Maybe<Jackknife> text;    ///< intervals from leaving out stretches of text
  SinkDecision decision;
};

/// Decides by the permutation of KV groups within layers; where it is refused by the circular shift; where both are,
/// not at all. Source: inference.md.
SinkDecision decide(const PermutationTest& blocks, const PermutationTest& shift);

/// @param kind  [layer position] attention kind
SinkInference sink_inference(const ChunkedPairs& pairs, const std::vector<std::string>& kind,
                             const Resampling& resampling);

/// "r = +0.770, +0.850 by chance"; the latter where it is not 0, as it is for KV groups of one head.
std::string relation_in_words(const SinkDecision& decision);

OrderedJson to_json(const SinkInference& inference);

}  // namespace gainlens::analyses
