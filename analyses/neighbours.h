#pragma once

#include "analyses/options.h"
#include "analyses/statistics.h"
#include "runfile/run_reader.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::analyses {

/// Fewest chunks of an interval that allows for neighbours: the smallest number for which its level was simulated.
inline constexpr std::size_t least_neighbours = 8;
/// Up to this correlation of neighbours that interval holds the mean in at least 92% of simulations.
inline constexpr double most_correlation = 0.7;

/// Factor (1 + r)/(1 - r) on the variance of a mean of many values whose neighbours have correlation r. Exact for a
/// first-order autoregression in the limit of many values.
/// @param r  in (-1, 1)
double variance_inflation(double r);

/// The 95% interval of a mean of values in the order of the text, whose neighbours may be alike:
/// m -+ 6.747 sqrt(sum of S_t^2) / n^1.5, with S_t the sum of the first t values minus t m. The error is measured on
/// sums of neighbours, so the interval widens with their correlation, and no correlation is estimated.
/// Source: Kiefer, Vogelsang and Bunzel 2000, Econometrica 68(3), table II.
/// @param values  at least two
Interval self_normalised_interval(std::span<const double> values);

/// Lag-1 correlation sum (x_i - m)(x_{i+1} - m) / sum (x_i - m)^2 over the pairs that are neighbours in the text, with
/// m the mean of all values. For n independent values its mean is about -1/n and its standard error about 1/sqrt(n).
/// Missing if there are fewer than three values, if all are equal, or if no two are neighbours.
/// @param chunks  [value] number of the value's chunk, ascending
Measured lag_one_correlation(std::span<const double> values, std::span<const std::int64_t> chunks);

/// The correlation of neighbouring chunks of one length in one quantity, and its effect on the interval of the mean.
struct NeighbourCorrelation {
  std::string_view quantity;  ///< one of neighbour_quantities
  std::int64_t tokens;        ///< context length
  Measured mean;              ///< over chunks
  std::size_t chunks;
  Measured correlation;      ///< lag_one_correlation()
  Maybe<Interval> interval;  ///< Student interval of the mean, with chunks as independent
  Maybe<Interval> allowing;  ///< self_normalised_interval(), or `interval` if this is wider. Missing below
                             ///< least_neighbours, and if a chunk is missing between two others
  Measured widening;         ///< width of `allowing` divided by that of `interval`
};
/// The main quantities, for last-quarter queries of the deep layers: dataset, name.
inline constexpr std::pair<std::string_view, std::string_view> neighbour_quantities[] = {
    {"kalman_gain", "K"}, {"observation_precision", "ln lambda_obs"}, {"n_eff", "n_eff"}, {"gate", "gate"}};

/// Intervals over chunks treat the chunks as independent, but neighbours in a text are somewhat alike: how alike, for
/// every quantity of the run and every length.
struct Neighbours {
  std::vector<NeighbourCorrelation> rows;
  std::string finding;  ///< what this means for the intervals, in sentences
};

/// @throws InvalidArgument  see deep_layers() and usable_lengths()
Neighbours neighbours(const runfile::RunReader& reader, const Options& options = {});
OrderedJson to_json(const Neighbours& neighbours);

}  // namespace gainlens::analyses
