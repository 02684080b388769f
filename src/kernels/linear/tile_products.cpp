#include "kernels/linear/tile_products.h"

#include "core/check.h"
#include "kernels/elementwise/row_vectors.h"
#include "kernels/fixed_sizes.h"
#include "kernels/linear/brgemm.h"
#include "kernels/linear/pair_strips.h"
#include "kernels/linear/tile_kernels.h"
#include "kernels/row_alignment.h"
#include "kernels/tensor_elements.h"

#include <ATen/ATen.h>
#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <cstring>

namespace gainlens::kernels {
namespace {

/// Inputs that are summed before the sum is added to the tile. Another value gives other bits.
constexpr std::int64_t strip_inputs = 256, brgemm_inputs = 1024;

/// A block of rows stays in the second-level cache while the panels pass.
constexpr std::int64_t block_bytes = std::int64_t{1} << 20;
constexpr std::int64_t min_product_rows = 48;

}  // namespace

TileProducts::TileProducts(const PackedWeight& weight, std::int64_t rows, std::int64_t tile_panels)
    : kernel_(weight.kernel()),
      type_(weight.type()),
      inputs_(weight.inputs()),
      stride_(tile_panels * weight.panel_columns()) {
  ASSERT(kernel_ != ProductKernel::libtorch, "libtorch multiplies without tiles");
  const std::int64_t padded_rows = rounded_up(rows, tile_kernels().rows);
  const auto floats = at::TensorOptions().dtype(at::kFloat);
  tiles_ = at::empty({2, padded_rows, stride_}, floats);
  if (kernel_ == ProductKernel::brgemm) return;
  // Rows whose distance is a power of two would share the same places of the cache.
  if (kernel_ == ProductKernel::pair_strips) {
    left_stride_ = padded<std::uint16_t>(inputs_) + row_alignment / static_cast<std::int64_t>(sizeof(std::uint16_t));
    left_ = at::zeros({padded_rows, left_stride_}, at::kBFloat16);
    return;
  }
  left_stride_ = padded<float>(inputs_) + row_alignment / static_cast<std::int64_t>(sizeof(float));
  left_ = at::zeros({padded_rows, left_stride_}, floats);
  if (kernel_ == ProductKernel::widened_strips) panel_ = at::empty({strip_inputs, weight.panel_columns()}, floats);
}

TileProducts::~TileProducts() {
  if (kernel_ == ProductKernel::brgemm && type_ == at::kBFloat16) at::native::cpublas::brgemm_release(true);
}

void TileProducts::take_rows(const at::Tensor& input, std::int64_t first, std::int64_t count) {
  rows_ = count;
  const std::int64_t stride = input.stride(0);
  const std::byte* const data = element(input, first * stride);
  if (kernel_ == ProductKernel::brgemm) {
    input_ = data;
    left_stride_ = stride;
    return;
  }
  if (kernel_ == ProductKernel::pair_strips) {
    auto* const rows = static_cast<std::byte*>(left_.mutable_data_ptr());
    const auto bytes = static_cast<std::size_t>(inputs_ * left_.element_size());
    for (std::int64_t row = 0; row < count; ++row) {
      std::memcpy(rows + row * left_stride_ * left_.element_size(), element(input, (first + row) * stride), bytes);
    }
    return;
  }
  const ElementType type = element_type(type_);
  for (std::int64_t row = 0; row < count; ++row) {
    row_vectors().widen(type, element(input, (first + row) * stride), inputs_,
                        left_.mutable_data_ptr<float>() + row * left_stride_);
  }
}

float* TileProducts::multiply(const PackedWeight& weight, std::int64_t panel, std::int64_t count, int tile) {
  float* const place = tiles_[tile].mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < count; ++i) multiply_panel(weight, panel + i, place + i * weight.panel_columns());
  return place;
}

void TileProducts::multiply_panel(const PackedWeight& weight, std::int64_t panel, float* tile) {
  const std::int64_t columns = weight.panel_columns();
  const std::int64_t step = kernel_ == ProductKernel::brgemm ? brgemm_inputs : strip_inputs;
  const TileKernels& kernels = tile_kernels();
  const std::int64_t strips = rounded_up(rows_, kernels.rows) / kernels.rows;
  for (std::int64_t first = 0; first < inputs_; first += step) {
    const std::int64_t count = std::min(step, inputs_ - first);
    const std::byte* const right = weight.panel(panel, first);
    if (kernel_ == ProductKernel::brgemm) {
      brgemm({type_, rows_, columns, count, left_stride_, stride_, first > 0},
             input_ + first * static_cast<std::int64_t>(c10::elementSize(type_)), right, tile);
    } else if (kernel_ == ProductKernel::pair_strips) {
      multiply_pairs(strips, count / 2, left_.const_data_ptr<at::BFloat16>() + first, left_stride_, right, first > 0,
                     tile, stride_);
    } else {
      const auto* factors = reinterpret_cast<const float*>(right);
      if (kernel_ == ProductKernel::widened_strips) {
        auto* const wide = panel_.mutable_data_ptr<float>();
        row_vectors().widen(element_type(type_), right, count * columns, wide);
        factors = wide;
      }
      kernels.multiply(strips, count, left_.const_data_ptr<float>() + first, left_stride_, factors, first > 0, tile,
                       stride_);
    }
  }
}

ProductTasks cut_into_tasks(const PackedWeight& weight, std::int64_t rows, std::int64_t panels) {
  const std::int64_t strip = tile_kernels().rows;
  const std::int64_t fitting =
      block_bytes / (weight.inputs() * static_cast<std::int64_t>(c10::elementSize(at::kFloat)));
  ProductTasks tasks{};
  tasks.rows_per_block = std::min(rounded_up(std::clamp(fitting, min_product_rows, max_product_rows), strip), rows);
  tasks.row_blocks = blocks_of(rows, tasks.rows_per_block);
  // Several tasks for each worker, so that all finish at about the same time; at least a few panels in each, since each
  // task copies its rows.
  const std::int64_t wanted = std::max<std::int64_t>(1, 4 * task_workers() / tasks.row_blocks);
  tasks.panels_per_chunk = std::max<std::int64_t>(std::min<std::int64_t>(4, panels), blocks_of(panels, wanted));
  tasks.chunks = blocks_of(panels, tasks.panels_per_chunk);
  return tasks;
}

}  // namespace gainlens::kernels
