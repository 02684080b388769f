#pragma once

#include <cstdint>

namespace gainlens::kernels {

/// Positions of a chunk of gated_delta_rule_chunked. Estimates of memory and time need it without libtorch.
inline constexpr std::int64_t delta_chunk_positions = 64;

}  // namespace gainlens::kernels
