#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gainlens::kernels {

/// Rows of a [head, position, dimension] tensor of float32, float64, float16 or bfloat16, converted as they are read.
class TensorRows {
 public:
  /// Copies the tensor only where its last dimension is not contiguous.
  explicit TensorRows(const at::Tensor& tensor);

  /// Writes the row's elements to `row`, as float or double.
  template <typename Real>
  void load(std::int64_t head, std::int64_t position, Real* row) const;

 private:
  at::Tensor tensor_;
};

/// Writes row[i] * factor to element `first` + i of the contiguous tensor, converted to its dtype.
template <typename Real>
void store_row(const Real* row, std::int64_t count, Real factor, const at::Tensor& tensor, std::int64_t first);

}  // namespace gainlens::kernels
