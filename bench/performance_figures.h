#pragma once

#include "reports/figures/figure.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::bench {

using reports::Figure;

/// The cost of one method at one shape of attention.
struct PerformancePoint {
  std::string method;  ///< its name in a legend
  std::int64_t tokens;
  std::int64_t head_dim;
  std::int64_t group;                  ///< query heads for each key/value head
  std::optional<std::int64_t> window;  ///< keys that a query sees; empty: itself and all before it
  double seconds;                      ///< median
  double seconds_low;                  ///< lower quartile
  double seconds_high;                 ///< upper quartile
  double ratio;                        ///< seconds divided by those of libtorch's SDPA at the same shape
  double peak_bytes;
};

/// `performance-ratio`: time divided by that of libtorch's SDPA, against context length. One line for each head size,
/// group and window.
/// @param points  of one method, at least one
/// @throws InvalidArgument  there are more shapes than line styles (max_runs in palette.h)
Figure performance_ratio_figure(const std::vector<PerformancePoint>& points);

/// `performance-cost`: seconds and peak memory against context length, on logarithmic axes. One line for each method.
/// @param points  at least one, all of one head size and group. The points of a method with a window get a line of
///     their own.
/// @throws InvalidArgument  there are more lines than line styles; a time or size is not positive
Figure performance_cost_figure(const std::vector<PerformancePoint>& points);

}  // namespace gainlens::bench
