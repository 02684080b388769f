#pragma once

#include "analyses/measured.h"
#include "core/filtered_positions.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// Does a filter treat rare items otherwise than frequent ones? Source: the paper, appendix "k-distribution", and
// docs/analyses/k-by-frequency.md.

namespace gainlens::analyses {

struct FrequencyOptions {
  std::int64_t groups = 100;  ///< of users and of items, at most; each is left out once for the intervals
  std::uint64_t seed = 0;     ///< by which users and items are put into groups
  std::int64_t bins = 20;   ///< of items by training count, of nearly equal numbers of items; fewer if counts are equal
  std::size_t threads = 1;  ///< changes no number
  std::string against;      ///< what stands in the place of the training counts; empty: nothing does
};

/// The fewest users and, of a correlation, the fewest items for which an interval is given. Ranks of few items do not
/// move when one of the groups is left out, and move between samples.
inline constexpr std::size_t fewest_frequency_users = 30, fewest_frequency_items = 50;

/// Items of similar frequency.
struct FrequencyBin {
  std::size_t items;
  double fewest, most;       ///< training counts
  double mean_count;         ///< training count, mean over items
  double mean;               ///< mean over items of the items' values
  Maybe<Interval> interval;  ///< over users and items
};

/// A statistic without one group of users, each with all of its positions, and without one group of items. NaN: it does
/// not exist. Empty for few users.
struct LeftOut {
  std::vector<double> users, items;  ///< [group]
};

/// A quantity against the training count of items. An item's value is the mean over all positions that hold it; items
/// without a position are left out.
struct FrequencyCorrelation {
  std::size_t items = 0;                              ///< with a position
  std::size_t users = 0;                              ///< all that the positions have
  Measured rho = Measured::none("not computed");      ///< Spearman
  Measured naive_p = Measured::none("not computed");  ///< as if items were independent; those of one history are not
  /// 95%, over users and items: two jackknives, of which one leaves out groups of users and the other groups of items.
  /// Over users alone, any number of the items is correlated with any quantity of the items, because both are fixed.
  /// (docs/analyses/k-by-frequency.md)
  Maybe<Interval> interval = Maybe<Interval>::none("not computed");
  Measured partial = Measured::none("not computed");  ///< Spearman, given the items' mean place and length of history
  Maybe<Interval> partial_interval = Maybe<Interval>::none("not computed");
  std::vector<FrequencyBin> bins;    ///< from rare to frequent
  LeftOut without, partial_without;  ///< rho and partial rho
};

/// Each quantity against the counts. The groups of users and of items are the same for all quantities, and in all calls
/// with equal positions and options.
/// @param counts      [item] training counts
/// @param quantities  [quantity][position], finite
/// @throws InvalidArgument  as check(); a position of no item, a value that is not finite
std::vector<FrequencyCorrelation> frequency_correlations(const ReadPositions& positions, std::span<const double> counts,
                                                         const std::vector<std::span<const double>>& quantities,
                                                         const FrequencyOptions& options);

/// One quantity of several models that read the same positions: seeds of an arm.
struct SeedFrequency {
  Measured rho = Measured::none("no seed");        ///< mean over seeds
  Measured deviation = Measured::none("no seed");  ///< of rho over seeds, ddof 1; missing with one seed
  /// The 95% interval of the mean, over users and items: with these models.
  Maybe<Interval> interval = Maybe<Interval>::none("no seed");
  Measured partial = Measured::none("no seed");
  Maybe<Interval> partial_interval = Maybe<Interval>::none("no seed");
};
/// @param seeds  at least one, of one call of frequency_correlations(). What one seed lacks is missing
SeedFrequency over_seeds(std::span<const FrequencyCorrelation> seeds);

/// rho of a model less that of its placebo, both means over seeds. A group of users or of items is left out of both
/// together.
struct FrequencyDifference {
  Measured value = Measured::none("not computed");
  Maybe<Interval> interval = Maybe<Interval>::none("not computed");
};
/// @param model, placebo  at least one seed each, with equal positions and options
FrequencyDifference difference_to(std::span<const FrequencyCorrelation> model,
                                  std::span<const FrequencyCorrelation> placebo);

/// @throws InvalidArgument  fewer than 20 groups or more than 10,000; fewer than 2 bins or more than 1,000
void check(const FrequencyOptions& options);

}  // namespace gainlens::analyses
