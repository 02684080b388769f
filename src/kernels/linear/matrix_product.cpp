#include "kernels/linear/matrix_product.h"

#include "core/check.h"
#include "kernels/gradient_tracking.h"
#include "kernels/linear/tile_kernels.h"
#include "kernels/parallel_tasks.h"
#include "kernels/row_alignment.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>

namespace gainlens::kernels {
namespace {

/// Terms that are summed in registers before the sum joins the tile. Another value gives other bits.
constexpr std::int64_t block_inner = 256;

/// The largest tile of a task, in strips and panels: with the packed sides it fits in the second-level cache.
constexpr std::int64_t max_strips = 21, max_panels = 8;
/// The smallest, in strips: each task packs its part of the right side, and smaller tasks would mostly pack.
constexpr std::int64_t fewest_strips = 8;

/// A small result has few tiles. Then its sums are cut into parts: more tasks, which end at about the same time.
constexpr std::int64_t small_result = 65536, fewest_terms_of_part = 512, max_product_parts = 8;

/// The stride of a single row or column has no meaning.
bool rows_contiguous(const at::Tensor& x) {
  return x.stride(1) == 1 || x.size(1) <= 1;
}
bool columns_contiguous(const at::Tensor& x) {
  return x.stride(0) == 1 || x.size(0) <= 1;
}

struct Matrix {
  const float* data;
  std::int64_t row_step, column_step;

  explicit Matrix(const at::Tensor& x)
      : data(x.const_data_ptr<float>()), row_step(x.stride(0)), column_step(rows_contiguous(x) ? 1 : x.stride(1)) {
    if (column_step != 1) row_step = 1;
  }
  bool transposed() const { return column_step != 1; }
  const float* at(std::int64_t row, std::int64_t column) const { return data + row * row_step + column * column_step; }
};

/// How a product is cut into tasks: blocks of rows, blocks of columns, parts of the sums.
struct Cut {
  std::int64_t block_rows, row_blocks;
  std::int64_t block_columns, column_blocks;
  std::int64_t part_terms, parts;

  std::int64_t tasks() const { return row_blocks * column_blocks * parts; }
};

Cut cut_product(std::int64_t rows, std::int64_t columns, std::int64_t inner) {
  const TileKernels& kernels = tile_kernels();
  Cut cut{};
  const bool in_parts = rows * columns <= small_result && inner >= 2 * fewest_terms_of_part;
  cut.part_terms = blocks_of(inner, in_parts ? std::min(inner / fewest_terms_of_part, max_product_parts) : 1);
  cut.parts = blocks_of(inner, cut.part_terms);
  const std::int64_t panels = blocks_of(columns, kernels.columns), strips = blocks_of(rows, kernels.rows);
  const std::int64_t block_panels = blocks_of(panels, blocks_of(panels, max_panels));
  cut.block_columns = block_panels * kernels.columns;
  cut.column_blocks = blocks_of(panels, block_panels);
  // Several tasks for each worker, and as many for each if the rows allow it.
  const std::int64_t tasks_of_row_block = cut.parts * cut.column_blocks, workers = task_workers();
  std::int64_t blocks = std::max(blocks_of(strips, max_strips), blocks_of(4 * workers, tasks_of_row_block));
  if (tasks_of_row_block % workers != 0) blocks = rounded_up(blocks, workers);
  const std::int64_t block_strips = std::max(blocks_of(strips, blocks), std::min(fewest_strips, strips));
  cut.block_rows = block_strips * kernels.rows;
  cut.row_blocks = blocks_of(strips, block_strips);
  return cut;
}

/// The workspace of one worker: a tile of the result, and what it packs to compute it.
class Worker {
 public:
  Worker(const Matrix& left, const Matrix& right, const Cut& cut)
      : left_(left), right_(right), stride_(cut.block_columns) {
    const auto floats = at::TensorOptions().dtype(at::kFloat);
    const std::int64_t inner = std::min(block_inner, cut.part_terms);
    // Rows whose distance is a power of two would share the same places of the cache.
    left_stride_ = left.transposed() ? cut.block_rows : padded<float>(inner) + padded<float>(1);
    packed_left_ = at::empty({left.transposed() ? inner : cut.block_rows, left_stride_}, floats);
    panel_ = at::empty({inner, kernels_.columns}, floats);
    tile_ = at::empty({cut.block_rows, stride_}, floats);
  }

  /// left[row.., first..] right[first.., column..], in a tile [rows, stride()].
  const float* multiply(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns,
                        std::int64_t first, std::int64_t inner) {
    auto* const tile = tile_.mutable_data_ptr<float>();
    const std::int64_t strips = blocks_of(rows, kernels_.rows);
    for (std::int64_t done = 0; done < inner; done += block_inner) {
      const std::int64_t count = std::min(block_inner, inner - done);
      pack_left(row, rows, first + done, count);
      for (std::int64_t i = 0; i < columns; i += kernels_.columns) {
        pack_panel(first + done, count, column + i, std::min(kernels_.columns, columns - i));
        (left_.transposed() ? kernels_.multiply_transposed : kernels_.multiply)(
            strips, count, packed_left_.const_data_ptr<float>(), left_stride_, panel_.const_data_ptr<float>(), done > 0,
            tile + i, stride_);
      }
    }
    return tile;
  }
  std::int64_t stride() const { return stride_; }

 private:
  /// Rows that fill up the last strip are zero.
  void pack_left(std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t count) {
    auto* const to = packed_left_.mutable_data_ptr<float>();
    const std::int64_t filled = rounded_up(rows, kernels_.rows);
    if (left_.transposed()) {
      for (std::int64_t k = 0; k < count; ++k) {
        float* const place = std::copy_n(left_.at(row, first + k), rows, to + k * left_stride_);
        std::fill_n(place, filled - rows, 0.0F);
      }
    } else {
      for (std::int64_t i = 0; i < rows; ++i) std::copy_n(left_.at(row + i, first), count, to + i * left_stride_);
      for (std::int64_t i = rows; i < filled; ++i) std::fill_n(to + i * left_stride_, count, 0.0F);
    }
  }

  void pack_panel(std::int64_t first, std::int64_t count, std::int64_t column, std::int64_t columns) {
    auto* const to = panel_.mutable_data_ptr<float>();
    if (right_.transposed()) {
      kernels_.transpose(columns, count, right_.at(first, column), right_.column_step, 1, to, kernels_.columns);
    } else {
      for (std::int64_t k = 0; k < count; ++k)
        std::copy_n(right_.at(first + k, column), columns, to + k * kernels_.columns);
    }
    if (columns == kernels_.columns) return;
    for (std::int64_t k = 0; k < count; ++k)
      std::fill(to + k * kernels_.columns + columns, to + (k + 1) * kernels_.columns, 0.0F);
  }

  const TileKernels& kernels_ = tile_kernels();
  Matrix left_, right_;
  std::int64_t stride_, left_stride_ = 0;
  at::Tensor packed_left_, panel_, tile_;
};

void check_matrix(const at::Tensor& x, const at::Tensor& left, const char* what) {
  ASSERT(x.defined() && x.dim() == 2 && x.scalar_type() == at::kFloat, "{} must be a matrix in float32", what);
  ASSERT(x.device() == left.device(), "{} is on another device", what);
  ASSERT(!is_tracked(x), "{} needs a gradient", what);
}

void check_product(const at::Tensor& left, const at::Tensor& right, const MatrixProductOptions& options) {
  check_matrix(left, left, "the left side");
  check_matrix(right, left, "the right side");
  for (const at::Tensor* side : {&left, &right}) {
    ASSERT(rows_contiguous(*side) || columns_contiguous(*side), "a matrix with the strides {} and {}", side->stride(0),
           side->stride(1));
  }
  const std::int64_t rows = left.size(0), columns = right.size(1);
  ASSERT(right.size(0) == left.size(1), "a product of [{}, {}] and [{}, {}]", rows, left.size(1), right.size(0),
         columns);
  for (const at::Tensor* tensor : {&options.output, &options.residual}) {
    if (!tensor->defined()) continue;
    check_matrix(*tensor, left, "an output or a residual");
    ASSERT(tensor->size(0) == rows && tensor->size(1) == columns && rows_contiguous(*tensor),
           "an output or a residual of [{}, {}] with the strides {} and {} for a product of [{}, {}]", tensor->size(0),
           tensor->size(1), tensor->stride(0), tensor->stride(1), rows, columns);
  }
  ASSERT(!options.bias.defined() ||
             (options.bias.is_contiguous() && options.bias.scalar_type() == at::kFloat &&
              options.bias.numel() == columns && options.bias.device() == left.device() && !is_tracked(options.bias)),
         "a bias that does not fit the product");
}

at::Tensor product_by_libtorch(const at::Tensor& left, const at::Tensor& right, const MatrixProductOptions& options,
                               at::Tensor result) {
  const at::Tensor& added = options.residual.defined() ? options.residual : options.bias;
  if (!added.defined()) return at::mm_out(result, left, right);
  added.is_same(result) ? result.addmm_(left, right) : at::addmm_out(result, added, left, right);
  return options.residual.defined() && options.bias.defined() ? result.add_(options.bias) : result;
}

at::Tensor product_by_strips(const at::Tensor& left, const at::Tensor& right, const MatrixProductOptions& options,
                             at::Tensor result) {
  const std::int64_t rows = left.size(0), inner = left.size(1), columns = right.size(1);
  const Cut cut = cut_product(rows, columns, inner);
  const at::Tensor parts =
      cut.parts > 1 ? at::empty({cut.parts, rows, padded<float>(columns)}, left.options()) : at::Tensor();
  const auto* const bias = options.bias.defined() ? options.bias.const_data_ptr<float>() : nullptr;
  const auto residual_from = [&](std::int64_t row, std::int64_t column) {
    if (!options.residual.defined()) return ConstStoredRows{};
    const std::int64_t stride = options.residual.stride(0);
    return ConstStoredRows{options.residual.const_data_ptr<float>() + row * stride + column, stride};
  };
  const auto stored_from = [](const at::Tensor& to, std::int64_t row, std::int64_t column) {
    return StoredRows{to.mutable_data_ptr<float>() + row * to.stride(0) + column, to.stride(0)};
  };
  const TileKernels& kernels = tile_kernels();
  const Matrix left_matrix(left), right_matrix(right);
  run_tasks_with(cut.tasks(), [&](std::int64_t) {
    return [&, worker = std::make_unique<Worker>(left_matrix, right_matrix, cut)](std::int64_t task) {
      const std::int64_t part = task % cut.parts, tile = task / cut.parts;
      const std::int64_t row = tile / cut.column_blocks * cut.block_rows,
                         column = tile % cut.column_blocks * cut.block_columns;
      const std::int64_t tile_rows = std::min(cut.block_rows, rows - row),
                         tile_columns = std::min(cut.block_columns, columns - column);
      const std::int64_t first = part * cut.part_terms;
      const float* const product =
          worker->multiply(row, tile_rows, column, tile_columns, first, std::min(cut.part_terms, inner - first));
      if (cut.parts > 1) {
        kernels.finish(tile_rows, tile_columns, product, worker->stride(), nullptr, Activation::none,
                       ElementType::float32, {}, stored_from(parts[part], row, column));
      } else {
        kernels.finish(tile_rows, tile_columns, product, worker->stride(), bias == nullptr ? nullptr : bias + column,
                       Activation::none, ElementType::float32, residual_from(row, column),
                       stored_from(result, row, column));
      }
    };
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): the function object owns it
  });
  if (cut.parts == 1) return result;
  // In order, whatever the threads do.
  const std::int64_t stride = parts.stride(1);
  auto* const sums = parts.mutable_data_ptr<float>();
  at::parallel_for(0, rows, std::max<std::int64_t>(1, 32768 / (stride * cut.parts)),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t part = 1; part < cut.parts; ++part) {
                       const auto* const added = sums + part * rows * stride;
                       for (std::int64_t i = begin * stride; i < end * stride; ++i) sums[i] += added[i];
                     }
                     kernels.finish(end - begin, columns, sums + begin * stride, stride, bias, Activation::none,
                                    ElementType::float32, residual_from(begin, 0), stored_from(result, begin, 0));
                   });
  return result;
}

}  // namespace

at::Tensor matrix_product(const at::Tensor& left, const at::Tensor& right, const MatrixProductOptions& options,
                          std::optional<ProductKernel> kernel) {
  check_product(left, right, options);
  const std::int64_t rows = left.size(0), columns = right.size(1);
  at::Tensor result = options.output.defined() ? options.output : at::empty({rows, columns}, left.options());
  if (rows == 0 || columns == 0) return result;
  if (left.size(1) == 0) {  // a sum of nothing
    options.residual.defined() ? result.copy_(options.residual) : result.zero_();
    return options.bias.defined() ? result.add_(options.bias) : result;
  }
  const bool on_cpu = left.device().is_cpu();
  const ProductKernel chosen = kernel.value_or(on_cpu ? training_product_kernel() : ProductKernel::libtorch);
  ASSERT(chosen == ProductKernel::libtorch || (chosen == ProductKernel::strips && on_cpu),
         "{} cannot multiply these matrices", name_of(chosen));
  return chosen == ProductKernel::strips ? product_by_strips(left, right, options, std::move(result))
                                         : product_by_libtorch(left, right, options, std::move(result));
}

}  // namespace gainlens::kernels
