#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace gainlens::kernels {

/// Queries of a block: enough for about 2048 rows of scores, so that matrix products are fast. Fewer if rows are long,
/// for about 2^25 scores in all; but at least 16 queries of each head. The scores and weights of a block and a copy of
/// the weights in float64 are in memory at a time. On a GPU blocks are larger, since starting a computation takes
/// longer there than a small one: at most 2^26 scores, which take about 1 GiB.
inline std::int64_t composed_queries_per_block(std::int64_t heads, std::int64_t length, bool on_gpu = false) {
  const std::int64_t scores = std::int64_t{1} << (on_gpu ? 26 : 25);
  const std::int64_t rows = std::min<std::int64_t>(on_gpu ? 65536 : 2048, scores / length);
  const auto fitting = static_cast<std::uint64_t>(std::max<std::int64_t>(rows / heads, 1));
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::bit_floor(fitting)), 16, on_gpu ? 1024 : 256);
}

}  // namespace gainlens::kernels
