#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

// Linear layers with gradients, for training in float32 (kernels/linear/matrix_product.h). There are no second
// derivatives, as in layer_gradients.h.

namespace gainlens::kernels {

/// input weight^T + bias + residual.
/// @param input     [.., in]
/// @param weight    [out, in]
/// @param bias      [out]; may be undefined
/// @param residual  [.., out]; may be undefined
/// @returns [.., out]
at::Tensor trained_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias = {},
                          const at::Tensor& residual = {});

/// Several layers with the same input: the products add up the gradient of the input in one tensor.
/// @param weights  each [out, in]; at least one
/// @param biases   one for each weight; undefined: none
std::vector<at::Tensor> trained_linears(const at::Tensor& input, const std::vector<at::Tensor>& weights,
                                        const std::vector<at::Tensor>& biases);

}  // namespace gainlens::kernels
