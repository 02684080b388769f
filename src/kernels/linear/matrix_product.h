#pragma once

#include "kernels/linear/product_kernel.h"

#include <ATen/core/Tensor.h>

#include <optional>

namespace gainlens::kernels {

/// What is added to a product, and where it is stored.
struct MatrixProductOptions {
  at::Tensor bias;      ///< [columns]; may be undefined
  at::Tensor residual;  ///< [rows, columns]; may be undefined
  /// [rows, columns], rows contiguous; undefined: a new tensor. It may be the residual, and overlaps nothing else.
  at::Tensor output;
};

/// left right + bias + residual, in float32. For matrices that change too often to be packed (packed_weight.h), as in
/// training. Both sides may be transposed views.
///
/// The kernel `strips`: each task packs what it multiplies into the cache, for itself. The bits of the result do not
/// depend on the number of threads. They depend on the other rows and columns in one case only: if the result is small,
/// long sums are cut into parts, whose number follows from `inner` alone. With the kernel `libtorch` bits may depend on
/// both.
/// @param left    [rows, inner], one stride is 1
/// @param right   [inner, columns], one stride is 1; inner may be 0
/// @param kernel  strips or libtorch, for tests and benchmarks; by default that of training_product_kernel(), and
///                libtorch for tensors that are not on the CPU
/// @returns [rows, columns]
/// @throws InternalError  shapes, types, strides or devices that do not fit, or a tensor that needs a gradient
at::Tensor matrix_product(const at::Tensor& left, const at::Tensor& right, const MatrixProductOptions& options = {},
                          std::optional<ProductKernel> kernel = {});

}  // namespace gainlens::kernels
