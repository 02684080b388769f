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

inline constexpr double significance = 0.05;  ///< level of every decision; a test that cannot reach it is refused

/// Paired values of heads, with the clusters that make them dependent.
struct ClusteredPairs {
  std::vector<double> x;           ///< [point] finite
  std::vector<double> y;           ///< [point] finite
  std::vector<std::size_t> layer;  ///< [point] position on the layer axis
  std::vector<std::size_t> head;   ///< [point] query head within the layer, each at most once
  std::size_t group_size = 1;  ///< query heads that share a KV head: heads g * group_size .. (g + 1) * group_size - 1
  PairNames names = {};
};

/// One statistic and its two-sided permutation p. The null hypothesis need not make the statistic 0: `null_mean` is its
/// mean over all arrangements, known without drawing any, and an arrangement is the more extreme the farther its
/// statistic lies from there.
struct TestedStatistic {
  Measured value;      ///< of the values as they are
  Measured null_mean;  ///< mean of the statistic over all arrangements
  Measured least_p;    ///< what the most extreme arrangement would get, its ties counted; the reason where there is no
                       ///< statistic
  Measured p;  ///< (1 + number of drawn arrangements at least as extreme) / (1 + drawn), or their share of all; or why
               ///< it is refused

  /// value - null_mean: the relation that p speaks of; its sign is that of the verdict.
  Measured excess() const {
    return value && null_mean ? Measured(*value - *null_mean)
                              : Measured::none(value ? null_mean.reason() : value.reason());
  }
};

/// A permutation test of Pearson's and Spearman's correlation.
struct PermutationTest {
  double arrangements;     ///< distinct ones, that of the data among them; 1e300 stands for that many and more
  bool exact;              ///< every arrangement was tried
  std::int64_t resamples;  ///< arrangements drawn or, where exact, tried
  std::uint64_t seed;
  TestedStatistic pearson;
  TestedStatistic spearman;
};

/// Exchanges the y of whole KV groups within each layer. Layer effects and what the heads of a group share stay as they
/// are, so the null hypothesis is: within a layer, no group's y belongs to its x. The statistic is the correlation that
/// remains within layers (layer means taken off; Spearman: ranks within the layer), as what lies between layers is the
/// same in every arrangement. So is what the slots of a group (its first head, its second, ...) have in common over the
/// groups of a layer: with groups of several heads it moves the mean of the null to the cross product of the slot
/// means, and p counts arrangements by their distance from there. With groups of one head that mean is 0. KV groups
/// without all their heads, and layers with fewer than two groups, take no part. Refused where the least attainable p
/// exceeds `significance`, and where x or y does not differ between the groups of any layer. Source: inference.md, sink
/// v. K.
PermutationTest permute_blocks(const ClusteredPairs& pairs, const Resampling& resampling);

/// Shifts the y of all layers round the layer axis, by every number of layers: what neighbouring layers share stays as
/// it is but where the last meets the first. The layers count as a ring whose effects vary alike everywhere: a trend
/// along the depth in both x and y rejects as a relation does. The statistic is the pooled correlation; p is a multiple
/// of 1/L. What a head number has in common over the layers is the same after every shift and makes the mean of the
/// null, from which distances are taken. Refused where the least attainable p exceeds `significance`, for layers that
/// are not contiguous or lack a head, and where x or y is the same in every layer.
/// @param mixed  why the layers cannot be exchanged (several attention kinds); absent: they can
/// Source: inference.md, sink v. K.
PermutationTest shift_layers(const ClusteredPairs& pairs, const std::optional<std::string>& mixed);

/// "1 arrangement", "256 arrangements", "6.2e+29 arrangements".
std::string count_arrangements(double arrangements);
OrderedJson to_json(const PermutationTest& test);

}  // namespace gainlens::analyses
