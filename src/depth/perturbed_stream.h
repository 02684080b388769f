#pragma once

#include "hooks/hooked_model.h"

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

// The truth beside the rules: errors that are drawn and carried by the model itself.

namespace gainlens::depth {

/// How errors of the embedded tokens arrive in each layer.
struct Perturbation {
  at::Tensor variance;  ///< [width] of the error of each token in the stream that enters layer 0
  double scale = 0.01;  ///< the errors are drawn that much smaller, so that the model is linear for them
  std::int64_t draws = 16;
  std::int64_t layers = 0;  ///< that run
  bool allow_extrapolation = false;
};
/// @param queries  positions
/// @returns [layer][width]: the variance after each layer, mean over draws and queries, over scale^2
/// @throws RunFailed  as HookedModel::forward
std::vector<at::Tensor> carried_by_model(hooks::HookedModel& model, const hooks::Tokens& tokens,
                                         const at::Tensor& queries, const Perturbation& perturbation,
                                         at::Generator& generator);

}  // namespace gainlens::depth
