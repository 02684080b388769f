#pragma once

namespace gainlens::kernels {

/// f(x) of one number.
enum class Activation {
  none,
  silu,          ///< x / (1 + exp(-x))
  gelu_tanh,     ///< x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
  gelu_erf,      ///< x (1 + erf(x / sqrt(2))) / 2
  relu,          ///< max(x, 0)
  squared_relu,  ///< max(x, 0)^2
};

/// How a gate g and a neuron u become one number: f(g) u. Or, if `clipped`, as in gpt-oss:
/// (clamp(u, -limit, limit) + 1) c / (1 + exp(-alpha c)), with c = min(g, limit).
struct GateFunction {
  Activation activation = Activation::silu;
  bool clipped = false;
  double limit = 0;
  double alpha = 0;
};

}  // namespace gainlens::kernels
