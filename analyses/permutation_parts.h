#pragma once

#include "analyses/permutation.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// [block][slot]: the values of one layer's whole KV groups or, for the shift, of all layers. A block moves as a whole.
using Blocks = std::vector<std::vector<double>>;

/// The values; where those of a slot differ by rounding alone, the first of them stands in every block. They then tie,
/// as values and as ranks.
Blocks same_where_alike(Blocks blocks);
/// The values minus their mean; exact zeros if all are equal, because rounding must not look like variation.
Blocks without_mean(Blocks blocks);
/// The values minus the mean of their slot over the blocks; exact zeros likewise.
Blocks without_slot_means(Blocks blocks);
/// Ranks among all values; ties share their average rank.
Blocks ranked(Blocks blocks);

/// Sums of products of paired, centred values.
struct Moments {
  double cross = 0, x_squares = 0, y_squares = 0;

  void add(const Blocks& x, const Blocks& y);
  double scale() const;
};

/// One statistic with two centrings. The reported correlation is of values minus their overall mean. The slot means
/// contribute the same to it in every permutation: that is its mean over all permutations. Values minus their slot
/// means give a part that varies about 0.
struct Sums {
  Moments reported;  // of values minus their mean
  Moments moved;     // of values minus their slot means

  double value() const { return reported.cross / reported.scale(); }
  double null_mean() const { return (reported.cross - moved.cross) / reported.scale(); }
};

TestedStatistic no_statistic(const std::string& reason);
/// The result if permuting changes nothing. If all values are equal there is no correlation; if all blocks are equal
/// there is one, the same for every permutation. std::nullopt if permutations differ.
/// @param constant  the words after the name, if all values are equal
/// @param same      the words after the name, if all blocks are equal
std::optional<TestedStatistic> nothing_to_arrange(const Sums& sums, const PairNames& names, std::string_view constant,
                                                  std::string_view same);

/// @param crosses  cross products of values minus their slot means: one for each permutation, the data's own included
TestedStatistic judge_all(const std::vector<double>& crosses, const Sums& sums);
/// @param crosses       the same of random permutations
/// @param arrangements  number of distinct permutations
TestedStatistic judge_drawn(const std::vector<double>& crosses, const Sums& sums, double arrangements);

}  // namespace gainlens::analyses
