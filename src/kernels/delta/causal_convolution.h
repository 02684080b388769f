#pragma once

#include <ATen/core/Tensor.h>

namespace gainlens::kernels {

/// The causal convolution of each channel over positions: y_t = bias + sum_i w_i x_{t - kernel + 1 + i}. It is summed
/// in float32 (float64 stays) and rounded to the type of x once.
///
/// @param x       [batch, position, channel]
/// @param weight  [channel, 1, kernel]
/// @param bias    [channel]; may be undefined
/// @param past    [batch, kernel - 1, channel] positions before the first one, in the type of x; undefined: zeros. It
///     is set to the last positions of the extended x.
/// @returns [batch, position, channel] in the type of x
/// @throws InvalidArgument  shapes or types that do not fit, no position
at::Tensor causal_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& past);

/// silu of the same, without bias. The sum is rounded to the type of x before silu, as in the models' own code.
at::Tensor causal_convolution_silu(const at::Tensor& x, const at::Tensor& weight, at::Tensor& past);

}  // namespace gainlens::kernels
