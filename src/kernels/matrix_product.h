#pragma once

#include <cstdint>

namespace gainlens::kernels {

/// A row-major matrix: element (i, j) is data[i * stride + j].
template <typename Real>
struct MatrixView {
  Real* data;
  std::int64_t stride;
};

/// c = factor a b^T, with libtorch's own BLAS. `Real` is float or double.
/// @param a  [rows, inner]   @param b  [columns, inner]   @param c  [rows, columns]
template <typename Real>
void product_transposed(std::int64_t rows, std::int64_t columns, std::int64_t inner, Real factor, MatrixView<const Real> a,
                        MatrixView<const Real> b, MatrixView<Real> c);

/// c += a b.
/// @param a  [rows, inner]   @param b  [inner, columns]   @param c  [rows, columns]
template <typename Real>
void add_product(std::int64_t rows, std::int64_t columns, std::int64_t inner, MatrixView<const Real> a, MatrixView<const Real> b,
                 MatrixView<Real> c);

}  // namespace gainlens::kernels
