#pragma once

#include "kernels/linear/packed_weight.h"
#include "kernels/parallel_tasks.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gainlens::kernels {

/// The products of one block of rows with panels of a weight. Each worker has one, and it must be destroyed in the
/// thread that used it: a thread that multiplies with AMX holds a configuration of the processor's tiles, and other AMX
/// code in this thread would stop the process if it were left behind.
class TileProducts {
 public:
  /// @param weight  not of kernel libtorch
  /// @param rows    most rows of a block
  /// @param tile_panels  panels that lie beside each other in a tile
  TileProducts(const PackedWeight& weight, std::int64_t rows, std::int64_t tile_panels);
  TileProducts(const TileProducts&) = delete;
  TileProducts& operator=(const TileProducts&) = delete;
  ~TileProducts();

  /// Chooses the rows that the next products are of.
  /// @param input  [row, in], rows contiguous, in the type of the weight
  void take_rows(const at::Tensor& input, std::int64_t first, std::int64_t count);
  /// Products of the rows with `count` panels from `panel` on: a tile [rows, stride()] in float32. It is valid until
  /// the next call with the same `tile`, 0 or 1.
  float* multiply(const PackedWeight& weight, std::int64_t panel, std::int64_t count, int tile = 0);
  std::int64_t stride() const { return stride_; }

 private:
  void multiply_panel(const PackedWeight& weight, std::int64_t panel, float* tile);

  ProductKernel kernel_;
  at::ScalarType type_;
  std::int64_t inputs_, stride_, rows_ = 0;
  at::Tensor left_;   // rows with a stride that spreads them over the cache, in float32 or (pair_strips) bfloat16
  at::Tensor panel_;  // one block of a panel, widened
  at::Tensor tiles_;  // [2, rows, stride]
  const std::byte* input_ = nullptr;  // the rows where they lie, for brgemm
  std::int64_t left_stride_ = 0;
};

/// How the work of a product is cut into tasks. Which cuts are made changes no bits.
struct ProductTasks {
  std::int64_t rows_per_block, row_blocks;
  std::int64_t panels_per_chunk, chunks;

  std::int64_t count() const { return row_blocks * chunks; }
};

/// @param rows    of the input, > 0
/// @param panels  of the weight
ProductTasks cut_into_tasks(const PackedWeight& weight, std::int64_t rows, std::int64_t panels);

}  // namespace gainlens::kernels
