#pragma once

#include "analyses/options.h"
#include "analyses/statistics.h"
#include "core/json.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::analyses {

inline constexpr double significance = 0.05;  ///< level of every decision; a test that cannot reach it gives no p

/// Paired values of heads, with their layers and KV groups: heads of one layer or group are not independent.
struct ClusteredPairs {
  std::vector<double> x;           ///< [point] finite
  std::vector<double> y;           ///< [point] finite
  std::vector<std::size_t> layer;  ///< [point] position on the layer axis
  std::vector<std::size_t> head;   ///< [point] query head within the layer; each head at most once
  std::size_t group_size = 1;  ///< query heads that share a KV head: heads g * group_size .. (g + 1) * group_size - 1
  std::vector<std::size_t> layer_group_size = {};  ///< [layer] the same where layers differ; empty: group_size in all
  PairNames names = {};

  std::size_t group_size_of(std::size_t layer_position) const {
    return layer_group_size.empty() ? group_size : layer_group_size.at(layer_position);
  }
};

/// One statistic and its two-sided permutation p. Under the null hypothesis the statistic need not be 0 on average:
/// `null_mean` is its exact mean over all permutations. A permutation is more extreme if its statistic lies farther
/// from `null_mean`.
struct TestedStatistic {
  Measured value;      ///< of the data
  Measured null_mean;  ///< mean of the statistic over all permutations
  Measured min_p;      ///< smallest possible p: that of the most extreme permutation, ties counted
  /// (1 + drawn permutations at least as extreme) / (1 + drawn); if all were tried, the share that is at least as
  /// extreme. Missing, with the reason, if the test cannot decide.
  Measured p;

  /// value - null_mean: the relation that p is about; a verdict has its sign.
  Measured excess() const {
    return value && null_mean ? Measured(*value - *null_mean)
                              : Measured::none(value ? null_mean.reason() : value.reason());
  }
};

/// A permutation test of Pearson's and Spearman's correlation.
struct PermutationTest {
  double arrangements;     ///< number of distinct permutations, the data's own included; at most 1e300
  bool exact;              ///< whether every permutation was tried
  std::int64_t resamples;  ///< permutations drawn; if exact, tried
  std::uint64_t seed;
  TestedStatistic pearson;
  TestedStatistic spearman;
};

/// Exchanges the y of whole KV groups within each layer. Layer effects, and what the heads of a group share, stay as
/// they are. The null hypothesis is: within a layer, the y of a group is unrelated to its x.
/// - The statistic is the correlation within layers (layer means subtracted; Spearman: ranks within the layer), because
///   differences between layers are the same in every permutation.
/// - What the slots of a group (its first head, its second, ...) have in common over the groups of a layer is the same
///   in every permutation too. With groups of several heads, the mean under the null hypothesis is therefore the cross
///   product of the slot means, and p counts permutations by their distance from it. With groups of one head it is 0.
/// - KV groups with a missing head, and layers with fewer than two complete groups, are left out.
/// - There is no p if the smallest possible p exceeds `significance`, or if x or y does not differ between the groups
///   of any layer.
/// Source: docs/inference.md, "Block permutation".
PermutationTest permute_blocks(const ClusteredPairs& pairs, const Resampling& resampling);

/// Shifts the y of all layers round the layer axis, by every number of layers. What neighbouring layers share stays as
/// it is, except where the last layer meets the first.
/// - The statistic is the pooled correlation; with L layers, p is a multiple of 1/L.
/// - The layers count as a ring on which effects vary alike everywhere: a trend with depth in both x and y looks like a
///   relation.
/// - What a head number has in common over the layers is the same after every shift. It makes the mean under the null
///   hypothesis, from which distances are measured.
/// - There is no p if the smallest possible p exceeds `significance`, if the layers are not contiguous, if a head is
///   missing, or if x or y is the same in every layer.
/// @param mixed  why layers may not be exchanged (several kinds of attention); absent: they may
/// Source: docs/inference.md, "Circular shift".
PermutationTest shift_layers(const ClusteredPairs& pairs, const std::optional<std::string>& mixed);

/// "1 permutation", "256 permutations", "6.2e+29 permutations".
std::string count_arrangements(double arrangements);
OrderedJson to_json(const PermutationTest& test);

}  // namespace gainlens::analyses
