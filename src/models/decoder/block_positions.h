#pragma once

#include <cstdint>

namespace gainlens::models {

/// Number of positions whose neurons (of an MLP) or queries, keys and values (of linear attention) are in memory at a
/// time: a multiple of the chunks of the gated delta rule.
inline constexpr std::int64_t block_positions = 512;

}  // namespace gainlens::models
