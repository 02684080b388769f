#pragma once

#include "kernels/elementwise/row_functions.h"
#include "kernels/linear/activation.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

// The parts of a decoder's layer with gradients, for training in float32. The forward passes are those of evaluation
// (linear.h, row_functions.h) and have the same bits. Each backward pass reads and writes every tensor once; what it
// can compute anew from the inputs is not kept. There are no second derivatives: who asks for them (create_graph) gets
// an InvalidArgument. Linear layers are in trained_linear.h, the loss is in trained_loss.h.

namespace gainlens::kernels {

/// (offset + weight) y + bias, where y are the normalised rows of x.
/// @param x             [.., n]
/// @param weight, bias  both [n] or both [m, n]; the bias may be undefined
at::Tensor trained_norm(const at::Tensor& x, const NormOptions& options, const at::Tensor& weight, double offset,
                        const at::Tensor& bias);

/// Rotary position embedding, as rotated(). The tables have no gradient.
at::Tensor trained_rotation(const at::Tensor& heads, const at::Tensor& cosine, const at::Tensor& sine);

/// f(gates) neurons of each element; not for the clipped form.
at::Tensor trained_gate(const at::Tensor& gates, const at::Tensor& neurons, Activation activation);

/// f(x) of each element.
at::Tensor trained_activation(const at::Tensor& x, Activation activation);

/// f(x) and f'(x) of each element, both with gradients.
std::pair<at::Tensor, at::Tensor> trained_activation_with_slope(const at::Tensor& x, Activation activation);

}  // namespace gainlens::kernels
