#pragma once

#include "analyses/measured.h"

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

inline constexpr double confidence = 0.95;  ///< level of every interval, unless another is named

/// Numbers that are measured or summed in single precision differ by rounding alone if they differ by at most this
/// share of the size of what was summed (2^-23, the spacing of single precision).
inline constexpr double rounding_share = 0x1p-23;
/// Whether a number is rounding alone.
/// @param scale  size of the terms that it was summed from; 0: only an exact 0 is
bool is_rounding(double number, double scale);
/// Whether the values differ by rounding alone. Their spread is then no result: no test and no interval may rest on it.
/// @param values  at least one
bool alike(std::span<const double> values, double scale);
/// The reason where differences of chunks are alike.
inline constexpr const char* same_in_every_chunk = "the difference is the same in every chunk, up to rounding";
/// The values, with one magnitude for all whose magnitudes differ by rounding alone, and 0 for rounding alone. Ranks
/// and signs then see ties and zeros, and values that differ by rounding alone have a spread of exactly 0.
std::vector<double> without_rounding(std::span<const double> values, double scale);

/// Arithmetic mean of at least one value.
double mean(std::span<const double> values);
/// Variance with ddof 0, of at least one value.
double population_variance(std::span<const double> values);
/// Median of at least one value; for an even count, the mean of the two middle values.
double median(std::vector<double> values);
/// An estimate with its standard error and the degrees of freedom of this error.
struct Estimate {
  double value;
  double error;
  double degrees_of_freedom;  ///< above 0
};
/// The mean of independent values, with its error.
/// @param values  at least two
Estimate mean_estimate(std::span<const double> values);
/// Jackknife standard error of a statistic of G independent units, from the G values of the statistic with one unit
/// left out. For a mean over units of equal size it is the usual standard error.
double jackknife_error(std::span<const double> without_one);
/// Two-sided Student interval of an estimate with a finite error.
Interval student_interval(const Estimate& estimate, double level = confidence);

/// Two-sided Student interval of the mean of independent values (chunks of text), at level `confidence`.
/// Missing if there are fewer than two values.
Maybe<Interval> mean_interval(std::span<const double> values);

/// Ranks 1..n; ties share the average of their ranks.
std::vector<double> average_ranks(std::span<const double> values);

/// Pearson and Spearman correlation of paired values, with naive p-values: two-sided Student t that treats the points
/// as independent, which heads of one layer are not. For Spearman the same formula is applied to the ranks.
struct Correlation {
  std::size_t points;  ///< number of pairs
  Measured pearson;
  Measured pearson_naive_p;
  Measured spearman;
  Measured spearman_naive_p;
};

/// Names of the two sides, for the reason of a missing correlation.
struct PairNames {
  std::string_view x = "x";
  std::string_view y = "y";
};

/// Missing if there are fewer than three pairs or if one side is constant.
/// @param x, y  same size, every value finite
Correlation correlation(std::span<const double> x, std::span<const double> y, PairNames names = {});

/// Correlation within groups: the group's mean is subtracted on both sides (Spearman: from the ranks within the group),
/// and the remainders of all groups are correlated together. Degrees of freedom: points - groups - 1. A group of one
/// point carries no information and is left out of `points`.
/// @param group  [point] any numbering; same size as x and y
Correlation correlation_within(std::span<const double> x, std::span<const double> y, std::span<const std::size_t> group,
                               PairNames names = {});

/// Beyond this skewness, in magnitude, Student's t of a mean over 30 units or more is ruled from no longer. With it
/// simulated rulings hold their level, whatever the skewness. Source: docs/analyses/coverage.md, "Skewed documents".
inline constexpr double max_skewness = 1;

/// Third moment about the mean over the 3/2 power of the second, both with ddof 0; above 0 with a long tail upwards.
/// Missing with fewer than three values, or if they are alike.
/// @param values  finite
/// @param scale   size of the terms that the values were computed from: if they differ by its rounding alone, they are
///     alike; 0: only equal values are
Measured skewness(std::span<const double> values, double scale = 0);

}  // namespace gainlens::analyses
