#include "kernels/matrix_product.h"

#include <concepts>

// BLAS as libtorch_cpu exports it; libtorch has no header for it. Its own `at::mm` would allocate in the inner loop.
extern "C" {
void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k, const float* alpha, const float* a,
            const int* lda, const float* b, const int* ldb, const float* beta, float* c, const int* ldc);
void dgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k, const double* alpha,
            const double* a, const int* lda, const double* b, const int* ldb, const double* beta, double* c, const int* ldc);
}

namespace gainlens::kernels {
namespace {

/// BLAS is column-major: it sees our c as c^T [columns, rows] = op(b) a^T, so b comes first.
template <typename Real>
void gemm(char transpose_b, std::int64_t rows, std::int64_t columns, std::int64_t inner, Real alpha, MatrixView<const Real> a,
          MatrixView<const Real> b, Real beta, MatrixView<Real> c) {
  const char plain = 'N';
  const int m = static_cast<int>(columns), n = static_cast<int>(rows), k = static_cast<int>(inner);
  const int lda = static_cast<int>(b.stride), ldb = static_cast<int>(a.stride), ldc = static_cast<int>(c.stride);
  if constexpr (std::same_as<Real, float>) {
    sgemm_(&transpose_b, &plain, &m, &n, &k, &alpha, b.data, &lda, a.data, &ldb, &beta, c.data, &ldc);
  } else {
    dgemm_(&transpose_b, &plain, &m, &n, &k, &alpha, b.data, &lda, a.data, &ldb, &beta, c.data, &ldc);
  }
}

}  // namespace

template <typename Real>
void product_transposed(std::int64_t rows, std::int64_t columns, std::int64_t inner, Real factor, MatrixView<const Real> a,
                        MatrixView<const Real> b, MatrixView<Real> c) {
  gemm<Real>('T', rows, columns, inner, factor, a, b, 0, c);
}

template <typename Real>
void add_product(std::int64_t rows, std::int64_t columns, std::int64_t inner, MatrixView<const Real> a, MatrixView<const Real> b,
                 MatrixView<Real> c) {
  gemm<Real>('N', rows, columns, inner, 1, a, b, 1, c);
}

template void product_transposed(std::int64_t, std::int64_t, std::int64_t, float, MatrixView<const float>, MatrixView<const float>,
                                 MatrixView<float>);
template void product_transposed(std::int64_t, std::int64_t, std::int64_t, double, MatrixView<const double>, MatrixView<const double>,
                                 MatrixView<double>);
template void add_product(std::int64_t, std::int64_t, std::int64_t, MatrixView<const float>, MatrixView<const float>, MatrixView<float>);
template void add_product(std::int64_t, std::int64_t, std::int64_t, MatrixView<const double>, MatrixView<const double>, MatrixView<double>);

}  // namespace gainlens::kernels
