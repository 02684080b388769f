#pragma once

#include "kernels/linear/activation.h"

#include <ATen/core/Tensor.h>

namespace gainlens::models {

/// f(x) of each element, with a gradient if one is asked for.
at::Tensor activated(const at::Tensor& x, kernels::Activation activation);

/// The neurons of a gated layer from their gates, with a gradient if one is asked for.
at::Tensor gated(const at::Tensor& gates, const at::Tensor& neurons, const kernels::GateFunction& function);

}  // namespace gainlens::models
