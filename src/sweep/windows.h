#pragma once

#include "runfile/shard.h"
#include "runfile/windows.h"

#include <array>
#include <cstdint>
#include <span>

namespace gainlens::sweep {

using runfile::last_quarter_begin;
using runfile::second_half_begin;

/// The shortest length whose last quarter holds a query.
inline constexpr std::int64_t shortest_length = 4;

/// Mean and population variance (ddof 0) of the numbers that are there; NaN entries are left out. Both NaN where none
/// is left.
struct Moments {
  double mean;
  double variance;
  std::int64_t count;
};
Moments moments(std::span<const double> values);

/// Means over `runfile::bins` bins of positions, position t in bin floor(bins t / T); NaN where a bin holds no number.
std::array<double, runfile::bins> bin_means(std::span<const double> values);

}  // namespace gainlens::sweep
