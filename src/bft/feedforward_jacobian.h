#pragma once

#include "kernels/linear/activation.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

// The diagonal J of the Jacobian of a feed-forward layer, f(x) = W2 phi(W1 x + b1) + b2, for each row, without the
// Jacobian itself. W1 is [neuron, width], W2 is [width, neuron], both without their biases' part: J needs only the
// pre-activations. Source: the paper, section 3.2 [sec:algo-pred].

namespace gainlens::bft {

/// phi'(x) of each element, with a gradient (0 at the kinks of relu).
/// @throws InvalidArgument  Activation::none
at::Tensor activation_slope(const at::Tensor& x, kernels::Activation activation);

/// J = C slopes, C = W2 * W1^T.
/// @param slopes  [row, neuron] phi'(a)
/// @returns [row, width]
at::Tensor jacobian(const at::Tensor& up, const at::Tensor& down, const at::Tensor& slopes);

/// C = W2 * W1^T by its largest singular values. Constants: no gradient reaches W1 and W2 through them.
struct JacobianFactors {
  at::Tensor left;   ///< [width, rank], with the singular values
  at::Tensor right;  ///< [rank, neuron]
  double kept = 0;   ///< share of the squared singular values, in [0, 1]; 1 if all are 0
};

/// @param rank  at least 1; cut to the smaller side of C
JacobianFactors jacobian_factors(const at::Tensor& up, const at::Tensor& down, std::int64_t rank);

/// J of the low-rank form.
/// @returns [row, width]
at::Tensor jacobian(const JacobianFactors& factors, const at::Tensor& slopes);

/// J of f(layer norm(h)) with respect to h: the norm subtracts the mean and divides by s, z are the normalised rows,
/// and W1 g z + .. enters the layer. J = (1/s) [g (C phi') - W2 (phi' W1 g) / d - (z/d) W2 (phi' W1 (g z))].
/// @param slopes      [row, neuron]
/// @param normalised  [row, width] z, before the norm's weight
/// @param deviation   [row, 1] s
/// @param weight      [width] g
/// @returns [row, width]
/// Source: docs/bft.md, "Alternatives".
at::Tensor jacobian_with_norm(const at::Tensor& up, const at::Tensor& down, const at::Tensor& slopes,
                              const at::Tensor& normalised, const at::Tensor& deviation, const at::Tensor& weight);

/// J of a gated layer, f(x) = W2 (phi(Wg x) * (Wu x)): (W2 * Wg^T) (phi'(g) u) + (W2 * Wu^T) phi(g).
/// @param gates, neurons  [row, neuron] g = Wg x + .. and u = Wu x + ..
/// @returns [row, width]
at::Tensor gated_jacobian(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& down, const at::Tensor& gates,
                          const at::Tensor& neurons, kernels::Activation activation);

/// The same by the factors of W2 * Wg^T and W2 * Wu^T.
at::Tensor gated_jacobian(const JacobianFactors& gate_factors, const JacobianFactors& up_factors,
                          const at::Tensor& gates, const at::Tensor& neurons, kernels::Activation activation);

}  // namespace gainlens::bft
