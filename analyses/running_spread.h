#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace gainlens::analyses {

/// Mean and variance of numbers that come one at a time or in blocks, by the updates of Welford (1962) and of Chan,
/// Golub and LeVeque (1979). A sum of squares would lose the spread of numbers that hardly vary.
struct RunningSpread {
  void add(double x) {
    ++count;
    const double before = x - mean;
    mean += before / static_cast<double>(count);
    squares += before * (x - mean);
  }
  void add(const RunningSpread& other) {
    if (other.count == 0) return;
    const double between = other.mean - mean;
    const double share = static_cast<double>(other.count) / static_cast<double>(count + other.count);
    squares += other.squares + between * between * share * static_cast<double>(count);
    mean += between * share;
    count += other.count;
  }
  /// Standard deviation with ddof 1; 0 of a single number.
  double deviation() const { return std::sqrt(squares / std::max(static_cast<double>(count) - 1, 1.0)); }
  /// Standard error of the mean of independent numbers, at least one.
  double error() const { return deviation() / std::sqrt(static_cast<double>(count)); }

  std::int64_t count = 0;
  double mean = 0;     ///< of the numbers; 0 without any
  double squares = 0;  ///< sum of (x - mean)^2
};

}  // namespace gainlens::analyses
