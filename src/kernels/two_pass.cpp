#include "kernels/two_pass.h"

#include <algorithm>

namespace gainlens::kernels {
namespace {

constexpr std::int64_t slice_dims = 32;  // dimensions at a time: their sums stay in registers and on the stack

template <typename Real>
void slice_moments(const Real* weights, const Real* values, std::int64_t keys, std::int64_t stride, std::int64_t dims, double inverse_total,
                   Real* offset, Real* residual) {
  double sum[slice_dims] = {}, squares[slice_dims] = {};
  for (std::int64_t key = 0; key < keys; ++key) {
    const auto weight = static_cast<double>(weights[key]);
    for (std::int64_t i = 0; i < dims; ++i) sum[i] += weight * static_cast<double>(values[key * stride + i]);
  }
  for (std::int64_t i = 0; i < dims; ++i) sum[i] *= inverse_total;
  for (std::int64_t key = 0; key < keys; ++key) {
    const auto weight = static_cast<double>(weights[key]);
    for (std::int64_t i = 0; i < dims; ++i) {
      const double distance = static_cast<double>(values[key * stride + i]) - sum[i];
      squares[i] += weight * distance * distance;
    }
  }
  for (std::int64_t i = 0; i < dims; ++i) {
    offset[i] = inverse_total > 0 ? static_cast<Real>(sum[i] - static_cast<double>(values[i])) : Real{0};
    residual[i] = static_cast<Real>(squares[i] * inverse_total);
  }
}

}  // namespace

template <typename Real>
void two_pass_moments(const Real* weights, const Real* values, std::int64_t keys, std::int64_t dims, Real* offset, Real* residual) {
  double total = 0;
  for (std::int64_t key = 0; key < keys; ++key) total += static_cast<double>(weights[key]);
  const double inverse_total = total > 0 ? 1 / total : 0;
  for (std::int64_t first = 0; first < dims; first += slice_dims) {
    slice_moments(weights, values + first, keys, dims, std::min(slice_dims, dims - first), inverse_total, offset + first, residual + first);
  }
}

template void two_pass_moments(const float*, const float*, std::int64_t, std::int64_t, float*, float*);
template void two_pass_moments(const double*, const double*, std::int64_t, std::int64_t, double*, double*);

}  // namespace gainlens::kernels
