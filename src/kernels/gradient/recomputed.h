#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace gainlens::kernels {

using TensorFunction = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

/// f(inputs), of which nothing but the inputs is kept: the backward pass computes f again. What f computes must depend
/// on its inputs and on tensors that do not change in between. Tensors that f reads otherwise, such as weights, must be
/// leaves: their gradients are added to theirs at once, so backward() must be what asks for gradients. Both times f
/// runs with gradients, so its bits and those of the gradients are the same as if it was called directly. There are no
/// second derivatives.
/// Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016).
/// @param inputs  all defined; at least one
/// @throws what f throws
std::vector<at::Tensor> recomputed(const TensorFunction& f, const std::vector<at::Tensor>& inputs);

}  // namespace gainlens::kernels
