#pragma once

#include "core/quantity.h"
#include "runfile/query_windows.h"
#include "runfile/shard.h"

#include <array>
#include <cstdint>
#include <span>

namespace gainlens::sweep {

using runfile::last_quarter_begin;
using runfile::second_half_begin;

/// The shortest length whose last quarter holds a query.
inline constexpr std::int64_t shortest_length = 4;
/// For the option --lengths.
inline constexpr LeastCount min_length{shortest_length, "so that the last quarter holds a query"};

/// Mean, population variance (ddof 0) and count of the entries that are not NaN. Mean and variance are NaN if every
/// entry is NaN.
struct Moments {
  double mean;
  double variance;
  std::int64_t count;
};
Moments moments(std::span<const double> values);

/// Means over `runfile::bins` bins of positions. Position t lies in bin floor(bins t / T). NaN entries are left out.
/// The mean of a bin without numbers is NaN.
std::array<double, runfile::bins> bin_means(std::span<const double> values);

}  // namespace gainlens::sweep
