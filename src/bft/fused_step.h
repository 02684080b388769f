#pragma once

#include "bft/filter_options.h"

#include <ATen/core/Tensor.h>

#include <utility>

// Steps of the filter in one pass over memory each way: what filter_step.h and variance_of_moments() compute by many
// operations, with their values and gradients to rounding. For float32 on the CPU. A backward pass computes anew what
// it needs from the inputs. There are no second derivatives.

namespace gainlens::bft {

/// What attention observed, as kernels::PackedMoments gives it, with heads beside each other.
struct ObservedMoments {
  at::Tensor estimate;  ///< [position, width] e
  at::Tensor n_eff;     ///< [position, head]
  at::Tensor residual;  ///< [position, heads x head_dim] S
};

/// Whether tensors are of the type and on the device that the fused steps know.
bool fits_fused_steps(const at::Tensor& x);

/// Whether fused_update() can stand for the separate functions: reml and reml_conjugate, with scalar kriging.
bool has_fused_update(const FilterOptions& options);

/// Observe and update: K e, blended with e, and lambda'.
/// @param precision  [position, width] lambda
/// @param strength   share of K that acts: the factor of e is 1 + strength (K - 1)
/// @returns  {factor e, lambda'}, both [position, width]
std::pair<at::Tensor, at::Tensor> fused_update(const ObservedMoments& observed, const at::Tensor& precision,
                                               const FilterOptions& options, double strength);

/// Predict with a Jacobian and process noise: lambda'' within the bounds of the options.
/// @param posterior      [position, width] lambda'
/// @param jacobian       [position, width] J
/// @param process_noise  [width] Q
/// @returns  {lambda'', sum of max((1 + J)^2, 0.01) over the positions [width], without a gradient}
std::pair<at::Tensor, at::Tensor> fused_predict(const at::Tensor& posterior, const at::Tensor& jacobian,
                                                const at::Tensor& process_noise, const FilterOptions& options);

}  // namespace gainlens::bft
