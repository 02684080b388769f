#include "models/decoder/activation.h"

#include "kernels/elementwise/row_functions.h"
#include "kernels/gradient/layer_gradients.h"
#include "kernels/linear/linear.h"

namespace gainlens::models {

at::Tensor activated(const at::Tensor& x, kernels::Activation activation) {
  if (activation == kernels::Activation::none) return x;
  return kernels::one_pass(x) || !x.is_cpu() || x.scalar_type() != at::kFloat
             ? kernels::activated(x, activation)
             : kernels::trained_activation(x, activation);
}

at::Tensor gated(const at::Tensor& gates, const at::Tensor& neurons, const kernels::GateFunction& function) {
  const bool evaluated = kernels::one_pass(gates) && kernels::one_pass(neurons);
  return evaluated || function.clipped || !gates.is_cpu() || gates.scalar_type() != at::kFloat
             ? kernels::gated(gates, neurons, function)
             : kernels::trained_gate(gates, neurons, function.activation);
}

}  // namespace gainlens::models
