#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>

namespace gainlens::kernels {

/// One small product by oneDNN: tile (+)= left right, in float32.
struct BrgemmProduct {
  c10::ScalarType type;                   ///< of left and right: float32 or bfloat16
  std::int64_t rows, columns, inputs;     ///< left is [rows, inputs], right [inputs, columns], tile [rows, columns]
  std::int64_t left_stride, tile_stride;  ///< elements from row to row; right has no gaps
  bool add;                               ///< to what the tile holds
};

/// oneDNN writes machine code for each new shape, once in each thread. If that code gets no memory, libtorch 2.11
/// destroys what was never made, and the process ends by SIGSEGV. So the memory is asked for beforehand.
/// @param right  bfloat16: pairs of rows, as packed by PackedWeight
/// @throws std::bad_alloc  no memory for the machine code
void brgemm(const BrgemmProduct& product, const std::byte* left, const std::byte* right, float* tile);

}  // namespace gainlens::kernels
