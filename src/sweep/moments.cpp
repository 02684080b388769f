#include "sweep/moments.h"

#include <cmath>
#include <limits>

namespace gainlens::sweep {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Moments moments(std::span<const double> values) {
  double total = 0;
  std::int64_t count = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    total += value;
    ++count;
  }
  if (count == 0) return {nan, nan, 0};
  const double mean = total / static_cast<double>(count);
  double squares = 0;
  for (const double value : values) {
    if (!std::isnan(value)) squares += (value - mean) * (value - mean);
  }
  return {mean, squares / static_cast<double>(count), count};
}

std::array<double, runfile::bins> bin_means(std::span<const double> values) {
  std::array<double, runfile::bins> totals{};
  std::array<std::int64_t, runfile::bins> counts{};
  for (std::size_t position = 0; position < values.size(); ++position) {
    if (std::isnan(values[position])) continue;
    const std::size_t bin = position * runfile::bins / values.size();
    totals[bin] += values[position];
    ++counts[bin];
  }
  for (std::size_t bin = 0; bin < totals.size(); ++bin) {
    totals[bin] = counts[bin] > 0 ? totals[bin] / static_cast<double>(counts[bin]) : nan;
  }
  return totals;
}

}  // namespace gainlens::sweep
