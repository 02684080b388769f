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

/// Below this many chunks a correlation of neighbours is shown and not used: its standard error, about 1 / sqrt(n),
/// exceeds 0.35.
inline constexpr std::size_t least_neighbours = 8;

/// Factor (1 + r)/(1 - r) by which neighbours of correlation r inflate the variance of a mean of many.
/// Exact for a first-order autoregression as the number of values grows. @param r  in (-1, 1)
double variance_inflation(double r);

/// Lag-1 correlation sum (x_i - m)(x_{i+1} - m) / sum (x_i - m)^2 over the pairs that are neighbours in the text, m the
/// mean of all. Of n independent values its mean is about -1/n and its standard error about 1/sqrt(n). Missing for
/// fewer than three values, for equal ones, and where no two are neighbours.
/// @param chunks  [value] number of its chunk, ascending
Measured lag_one_correlation(std::span<const double> values, std::span<const std::int64_t> chunks);

/// How alike neighbouring chunks of one length are in one quantity, and what that does to the interval of its mean.
struct NeighbourCorrelation {
  std::string_view quantity;  ///< one of neighbour_quantities
  std::int64_t tokens;        ///< context length
  Measured mean;              ///< over chunks
  std::size_t chunks;
  Measured correlation;      ///< lag_one_correlation()
  Measured inflation;        ///< of the variance of the mean, from correlation + 1/n; missing below least_neighbours
  Maybe<Interval> interval;  ///< the Student interval of the mean, which takes chunks as independent
  Maybe<Interval> allowing;  ///< the same with the inflated variance; never the narrower of the two
};
/// The headline quantities, over the deep layers' last-quarter queries: dataset, name.
inline constexpr std::pair<std::string_view, std::string_view> neighbour_quantities[] = {
    {"kalman_gain", "K"}, {"observation_precision", "ln lambda_obs"}, {"n_eff", "n_eff"}, {"gate", "gate"}};

/// Every interval over chunks takes them as independent; neighbours in a text are not quite. Every quantity that the
/// run has, length by length.
struct Neighbours {
  std::vector<NeighbourCorrelation> rows;
  std::string finding;  ///< what follows for the intervals, in sentences
};

/// @throws InvalidArgument  see deep_layers() and usable_lengths()
Neighbours neighbours(const runfile::RunReader& reader, const Options& options = {});
OrderedJson to_json(const Neighbours& neighbours);

}  // namespace gainlens::analyses
