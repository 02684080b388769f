#pragma once

#include <cstdint>

namespace gainlens::kernels {

/// Rows that vector code reads and writes are padded to a multiple of this many bytes, so that whole vectors can be
/// read and written.
inline constexpr std::int64_t row_alignment = 64;

/// Number of blocks of `size` that hold `count`.
constexpr std::int64_t blocks_of(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

/// `count` rounded up to a multiple of `unit`.
constexpr std::int64_t rounded_up(std::int64_t count, std::int64_t unit) {
  return blocks_of(count, unit) * unit;
}

/// `count` rounded up to a whole number of aligned units of Real.
template <typename Real>
constexpr std::int64_t padded(std::int64_t count) {
  return rounded_up(count, row_alignment / static_cast<std::int64_t>(sizeof(Real)));
}

/// The rows of a matrix in memory: element (i, j) is data[i * stride + j].
template <typename Real>
struct Rows {
  Real* data = nullptr;
  std::int64_t stride = 0;

  Real* row(std::int64_t i) const { return data + i * stride; }
};

}  // namespace gainlens::kernels
