#pragma once

#include "analyses/measured.h"
#include "core/json.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// Does a filter treat rare items otherwise than frequent ones? Source: the paper, appendix "k-distribution", and
// docs/analyses/k-by-frequency.md.

namespace gainlens::analyses {

/// What the filter of a model does at the positions that it reads before it recommends.
struct FilteredPositions {
  std::vector<std::size_t> begin;  ///< [user + 1] from 0: the positions of a user lie one after another
  std::vector<std::size_t> item;   ///< [position] place on the item axis
  std::vector<double> place;       ///< [position] in the history that the model sees, from 1
  std::vector<double> length;      ///< [position] of this history
  /// One layer: means over the dimensions.
  struct Layer {
    std::vector<double> gain;       ///< [position] K
    std::vector<double> precision;  ///< [position] lambda before the layer
  };
  std::vector<Layer> layers;

  std::size_t users() const { return begin.empty() ? 0 : begin.size() - 1; }
};

struct FrequencyOptions {
  std::int64_t resamples = 1000;  ///< of users
  std::uint64_t seed = 0;
  std::size_t bins = 20;  ///< of items by training count, of equal numbers of items
};

/// The fewest users for which an interval is given.
inline constexpr std::size_t fewest_frequency_users = 30;

/// Items of similar frequency: the mean over items of the items' means.
struct FrequencyBin {
  std::size_t items;
  double fewest, most;  ///< training counts
  double mean_count;
  double mean;
  Maybe<Interval> interval;  ///< over users
};

/// A quantity of one layer against the training count of items. An item's value is its mean over all positions that
/// hold it; items without a position are left out.
struct FrequencyCorrelation {
  std::size_t items;         ///< with a position
  Measured rho;              ///< Spearman
  Measured naive_p;          ///< takes items as independent, which items of one history are not
  Maybe<Interval> interval;  ///< 95%, over users: users are drawn with replacement, each with all of its positions
  Measured partial;          ///< Spearman, given the items' mean place and mean length of history
  Maybe<Interval> partial_interval;
  std::vector<FrequencyBin> bins;  ///< from rare to frequent
  std::vector<double> resampled;   ///< [resample] rho; NaN where it does not exist. Empty without an interval
};

/// @param counts  [item] training counts
/// @param values  [position], finite
/// @throws InvalidArgument  options out of range; a position of no item
FrequencyCorrelation frequency_correlation(const FilteredPositions& positions, std::span<const double> values,
                                           std::span<const double> counts, const FrequencyOptions& options);

/// The difference of two correlations of the same users, a model and its placebo: rho - placebo's rho, with an interval
/// from the same resamples.
struct FrequencyDifference {
  Measured value;
  Maybe<Interval> interval;
};
/// @param model, placebo  by frequency_correlation() with the same options
FrequencyDifference difference_to(const FrequencyCorrelation& model, const FrequencyCorrelation& placebo);

/// @throws InvalidArgument  fewer than 39 resamples or more than 100,000; fewer than 2 bins or more than 1,000
void check(const FrequencyOptions& options);

}  // namespace gainlens::analyses
