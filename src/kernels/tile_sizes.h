#pragma once

#include <cstdint>

namespace gainlens::kernels {

/// Kernels that square values in float32 first subtract the mean of this many first values. Causal queries before that
/// position do not see all of these keys, so they are computed in another way.
inline constexpr std::int64_t centre_keys = 64;

/// Keys in one tile of scores. Tiles begin at multiples of this number, so that the sums of a query do not depend on
/// its block.
inline constexpr std::int64_t tile_keys = 256;

}  // namespace gainlens::kernels
