#pragma once

#include "analyses/permutation.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// [block][slot]: the values of one layer's whole KV groups or, for the shift, of all layers. A block moves as a whole.
using Blocks = std::vector<std::vector<double>>;

/// Less the mean of all values; exact zeros where all are equal: rounding must not look like variation.
Blocks without_mean(Blocks blocks);
/// Less the mean of each slot over the blocks; exact zeros likewise.
Blocks without_slot_means(Blocks blocks);
/// Ranks among all values, ties averaged.
Blocks ranked(Blocks blocks);

/// Sums over paired values less some means.
struct Moments {
  double cross = 0, x_squares = 0, y_squares = 0;

  void add(const Blocks& x, const Blocks& y);
  double scale() const;
};

/// The two centrings of one statistic. The correlation takes off the mean of all values that can be exchanged. Its mean
/// over the arrangements is what the slot means contribute, so that the arrangements of values without slot means vary
/// about 0.
struct Sums {
  Moments reported;  // less the mean
  Moments moved;     // less the slot means

  double value() const { return reported.cross / reported.scale(); }
  double null_mean() const { return (reported.cross - moved.cross) / reported.scale(); }
};

TestedStatistic no_statistic(const std::string& reason);
/// The result where there is nothing to arrange: values that are all equal have no correlation, and what is the same in
/// every block has one that every arrangement leaves as it is. Nothing where the arrangements differ.
/// @param constant  what to say of the former
/// @param same      what to say of the latter
std::optional<TestedStatistic> nothing_to_arrange(const Sums& sums, const PairNames& names, std::string_view constant,
                                                  std::string_view same);

/// @param crosses  cross products of every arrangement, of values without slot means; that of the data is among them
TestedStatistic judge_all(const std::vector<double>& crosses, const Sums& sums);
/// @param crosses       of random arrangements
/// @param arrangements  distinct ones that there are
TestedStatistic judge_drawn(const std::vector<double>& crosses, const Sums& sums, double arrangements);

}  // namespace gainlens::analyses
