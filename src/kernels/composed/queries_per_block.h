#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace gainlens::kernels {

/// Queries of a block: enough for about 2048 rows of scores, so that matrix products are fast. Fewer if rows are long,
/// for about 2^25 scores in all; but at least 16 queries of each head. The scores and weights of a block and a copy of
/// the weights in float64 are in memory at a time.
inline std::int64_t composed_queries_per_block(std::int64_t heads, std::int64_t length) {
  const std::int64_t rows = std::min<std::int64_t>(2048, (std::int64_t{1} << 25) / length);
  const auto fitting = static_cast<std::uint64_t>(std::max<std::int64_t>(rows / heads, 1));
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::bit_floor(fitting)), 16, 256);
}

}  // namespace gainlens::kernels
