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

/// Factor (1 + r)/(1 - r) on the variance of a mean of many values whose neighbours have correlation r. Exact for a
/// first-order autoregression in the limit of many values.
/// @param r  in (-1, 1)
double variance_inflation(double r);

/// Lag-1 correlation sum (x_i - m)(x_{i+1} - m) / sum (x_i - m)^2 over the pairs that are neighbours in the text, with
/// m the mean of all values. For n independent values its mean is about -1/n and its standard error about 1/sqrt(n).
/// Missing if there are fewer than three values, if all are equal, or if no two are neighbours.
/// @param chunks  [value] number of the value's chunk, ascending
Measured lag_one_correlation(std::span<const double> values, std::span<const std::int64_t> chunks);

/// The correlation of neighbouring chunks of one length in one quantity, beside the interval of the mean, which takes
/// chunks as independent. No interval allows for neighbours: those that were tried and are narrow enough to tell
/// something hold less than they state (docs/analyses/coverage.md).
struct NeighbourCorrelation {
  std::string_view quantity;  ///< one of neighbour_quantities
  std::int64_t tokens;        ///< context length
  Measured mean;              ///< over chunks
  std::size_t chunks;
  Measured correlation;      ///< lag_one_correlation()
  Maybe<Interval> interval;  ///< Student interval of the mean, with chunks as independent
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
