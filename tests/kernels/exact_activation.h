#pragma once

#include "kernels/linear/activation.h"

#include <ATen/ATen.h>

namespace gainlens::kernels {

/// libtorch's f(x), in the type of x: exact enough in float64.
inline at::Tensor exact_activation(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::silu:
      return at::silu(x);
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::gelu_erf:
      return at::gelu(x);
    case Activation::relu:
      return at::relu(x);
    case Activation::squared_relu:
      return at::relu(x).square();
  }
  return {};
}

}  // namespace gainlens::kernels
