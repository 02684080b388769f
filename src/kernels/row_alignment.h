#pragma once

#include <cstdint>

namespace gainlens::kernels {

/// Rows that vector code reads and writes are padded to a multiple of this many bytes, so that whole vectors can be
/// read and written.
inline constexpr std::int64_t row_alignment = 64;

/// `count` rounded up to a whole number of aligned units of Real.
template <typename Real>
constexpr std::int64_t padded(std::int64_t count) {
  constexpr std::int64_t lanes = row_alignment / static_cast<std::int64_t>(sizeof(Real));
  return (count + lanes - 1) / lanes * lanes;
}

}  // namespace gainlens::kernels
