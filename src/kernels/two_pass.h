#pragma once

#include <cstdint>

namespace gainlens::kernels {

/// Mean, relative to the value of key 0, and S = sum w (v - mean)^2 / sum w per dimension: two passes in double over a few keys; zeros
/// where all weights are zero.
///
/// @param weights  [key] non-negative   @param values  [key, dims]   @param offset, residual  [dims]
template <typename Real>
void two_pass_moments(const Real* weights, const Real* values, std::int64_t keys, std::int64_t dims, Real* offset, Real* residual);

}  // namespace gainlens::kernels
