#pragma once

#include "models/decoder/decoder_config.h"

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace gainlens::models {

/// Number of trained parameters: elements of all tensors, a tied head counted once.
/// @throws InvalidArgument  beyond int64
std::int64_t parameter_count(const DecoderConfig& config);

/// Estimate of the bytes a forward pass with statistics takes at its peak, for one sequence of `positions` tokens:
///
/// P b weights; P = parameter_count, b bytes per element + T b [3 W + 2 (H + G + 2 Hk) d + H d] residual stream, its
///   sum and norm; q, k, v, gate before and after rotation; output + min(T, 512) b 3 M the MLP's two projections and
///   their product, of one block of positions + T a H (12 + 8) statistics of one layer: 12 scalars a query, and
///   first_mass + min(T, 512) V (b + a) logits of one block of positions, and their log-softmax
///
/// with T positions, W width, H heads, Hk KV heads, d head_dim, G the gate's heads (H or 0), M mlp_width, V vocabulary,
/// a = 8 in float64, else 4. Attention and MLP are added although their peaks do not coincide; workspaces of the
/// kernels (a few MB a thread) are left out.
///
/// @throws InvalidArgument  beyond uint64, or a negative `positions`
std::uint64_t memory_needed(const DecoderConfig& config, at::ScalarType dtype, std::int64_t positions);

}  // namespace gainlens::models
