#pragma once

#include "reports/figure.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::reports {

/// What one method costs at one shape of attention.
struct PerformancePoint {
  std::string method;  ///< its name in a legend
  std::int64_t tokens;
  std::int64_t head_dim;
  std::int64_t group;                  ///< query heads for each key/value head
  std::optional<std::int64_t> window;  ///< keys that a query sees; none: all before it
  double seconds;                      ///< median
  double seconds_low;                  ///< lower quartile
  double seconds_high;                 ///< upper quartile
  double ratio;                        ///< seconds over those of fused attention at the same shape
  double peak_bytes;
};

/// Time over that of fused attention against context length, a line for each head size, group and window:
/// `performance-ratio`.
/// @param points  of one method, at least one
/// @throws InvalidArgument  more shapes than there are line styles (most_runs in palette.h)
Figure performance_ratio_figure(const std::vector<PerformancePoint>& points);

/// Seconds and peak memory against context length, both logarithmic, a line for each method: `performance-cost`.
/// @param points  at least one; a method's points with a window get a line of their own, all of one head size and group
/// @throws InvalidArgument  more lines than there are styles of them, or a time or size that is not positive
Figure performance_cost_figure(const std::vector<PerformancePoint>& points);

}  // namespace gainlens::reports
