#pragma once

#include "models/decoder/decoder_config.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gainlens::models {

/// What ALiBi adds to the score of a query and a key at each distance, [head, distance], float64: -slope_h distance,
/// times the factor. The bias depends on the distance, although a bias by the key's position would give the same
/// softmax: slope times position grows with the text, and at 32k positions float32 would keep only three digits of the
/// difference between two neighbours.
///
/// Slopes: 2^(-8 i / n) for i = 1..n, where n is the largest power of two up to `heads`. The remaining heads have the
/// odd powers of 2^(-4 / n). Source: Press, Smith, Lewis, "Train Short, Test Long" (2022).
/// @param alibi  without rounding
at::Tensor alibi_distance_bias(const Alibi& alibi, std::int64_t heads, std::int64_t positions);

/// What families that round add to the scores of each key, [head, key], float64: slope_h j times the factor. Slopes,
/// positions and products are rounded to bfloat16, as in the families' own code. The rounding depends on the position,
/// so a bias by distance cannot reproduce it.
/// @param alibi  with bfloat16 rounding
at::Tensor alibi_key_bias(const Alibi& alibi, std::int64_t heads, std::int64_t positions);

}  // namespace gainlens::models
