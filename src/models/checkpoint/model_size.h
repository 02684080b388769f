#pragma once

#include "models/decoder/decoder_config.h"

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace gainlens::models {

/// Number of trained parameters: the elements of all tensors. A tied head counts once.
/// @throws InvalidArgument  the number exceeds int64
std::int64_t parameter_count(const DecoderConfig& config);

/// Estimate of the bytes that a forward pass with statistics needs at its peak, for one sequence of `positions` tokens.
/// It is the sum of:
/// - P b: weights; P = parameter_count, b bytes per element
/// - T b [3 W + 2 (H + G + 2 Hk) d + H d]: residual stream, its sum and norm; q, k, v and gate before and after
///   rotation; output
/// - min(T, 512) b 3 M: the two projections of the MLP and their product, for one block of positions
/// - T a H (12 + 8): statistics of one layer: 12 scalars for each query, and first_mass
/// - min(T, 512) V (b + a): logits of one block of positions, and their log-softmax
///
/// Here T is positions, W width, H heads, Hk KV heads, d head_dim, G the number of gated heads (H or 0), M mlp_width, V
/// vocabulary, and a is 8 in float64, else 4. Attention and MLP are added, although their peaks do not coincide.
/// Workspaces of the kernels (a few MB for each thread) are left out.
///
/// @throws InvalidArgument  the number exceeds uint64; `positions` is negative
std::uint64_t memory_needed(const DecoderConfig& config, at::ScalarType dtype, std::int64_t positions);

}  // namespace gainlens::models
