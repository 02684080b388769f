#pragma once

#include <cstdint>

namespace gainlens::kernels {

/// Whether the processor multiplies pairs of bfloat16 numbers in vectors of 512 bits (AVX512_BF16).
bool has_pair_strips();

/// tile = left panel, or tile += left panel, for weights in bfloat16: TileKernels::multiply with two inputs at a time.
/// Each product is exact in float32, sums are in float32. As the processor's instruction demands, numbers below
/// 2^-126 in magnitude count as 0. The strips and panels are those of tile_kernels() where has_pair_strips().
/// @param pairs  of inputs
/// @param left   bfloat16 [strips * strip rows, >= 2 pairs]; left_stride counts its elements and is even
/// @param panel  bfloat16 [pairs, panel columns, 2], aligned to 64 bytes
/// @param tile   float32 [strips * strip rows, >= panel columns], rows aligned to 64 bytes
/// @throws InternalError  a processor without AVX512_BF16
void multiply_pairs(std::int64_t strips, std::int64_t pairs, const void* left, std::int64_t left_stride,
                    const void* panel, bool add, float* tile, std::int64_t tile_stride);

}  // namespace gainlens::kernels
