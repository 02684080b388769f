#pragma once

#include "hooks/hooked_model.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace gainlens::sweep {

/// Mean next-token negative log likelihood in nats over positions 0..T-2. The logits are computed in blocks of
/// positions, so that no [T, vocabulary] tensor is in memory.
///
/// @param normalized  [1, position, width], after the final norm
/// @param tokens      the T ids the model was run on, T >= 2
/// @throws RunFailed  NaN or infinite logits (names the first position)
double mean_negative_log_likelihood(hooks::HookedModel& model, const at::Tensor& normalized,
                                    std::span<const std::int32_t> tokens);

}  // namespace gainlens::sweep
