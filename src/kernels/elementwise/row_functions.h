#pragma once

#include "kernels/gradient_tracking.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

// Functions of rows of activations, each in one pass over memory. Evaluation only, for float32, bfloat16 and float16.
// Arithmetic is in float32, means and roots in double; the result is rounded once. The bits of a row depend on this row
// alone.

namespace gainlens::kernels {

/// Whether these functions may take the tensor: it is on the CPU, without gradient, and not in float64. libtorch
/// computes with others.
inline bool one_pass(const at::Tensor& x) {
  return x.is_cpu() && x.scalar_type() != at::kDouble && !is_tracked(x);
}

enum class NormKind {
  rms,    ///< x / sqrt(mean(x^2) + epsilon)
  layer,  ///< (x - mean(x)) / sqrt(var(x) + epsilon)
};

/// The norm of each row.
struct NormOptions {
  NormKind kind = NormKind::rms;
  double epsilon = 0;
};

/// The normalised rows, in float32. Squares are summed in float32, and are scaled where they would overflow.
/// @param x  [.., n], of any layout, n > 0
at::Tensor normalised(const at::Tensor& x, const NormOptions& options);

/// (offset + weight) y + bias, where y are the normalised rows, in the type of the weight. The bits are those of
/// normalised() followed by scaled_rows().
/// @param weight, bias  [n] or [m, n]: row i takes the weight of i mod m. The bias may be undefined
at::Tensor norm_rows(const at::Tensor& x, const NormOptions& options, const at::Tensor& weight, double offset,
                     const at::Tensor& bias);

/// (offset + weight) y + bias in the type of the weight.
/// @param y  [.., n], float32
at::Tensor scaled_rows(const at::Tensor& y, const at::Tensor& weight, double offset, const at::Tensor& bias);

/// Rotary position embedding: pairs (x_i, x_(i + h)) of the first 2 h dimensions are turned by the angle of their
/// position. The other dimensions are copied.
/// @param heads         [batch, position, head, head_dim]
/// @param cosine, sine  [position, h]
at::Tensor rotated(const at::Tensor& heads, const at::Tensor& cosine, const at::Tensor& sine);

/// Whether no element is NaN or infinite.
bool all_finite(const at::Tensor& x);

}  // namespace gainlens::kernels
