#pragma once

#include <cstdint>

namespace gainlens::kernels {

/// Rows that vector code reads and writes are padded to a multiple of this many bytes, so that whole vectors can be
/// read and written.
inline constexpr std::int64_t row_alignment = 64;

/// `count` rounded up to a multiple of `unit`.
constexpr std::int64_t rounded_up(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

/// `count` rounded up to a whole number of aligned units of Real.
template <typename Real>
constexpr std::int64_t padded(std::int64_t count) {
  return rounded_up(count, row_alignment / static_cast<std::int64_t>(sizeof(Real)));
}

}  // namespace gainlens::kernels
