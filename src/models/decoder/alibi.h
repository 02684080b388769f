#pragma once

#include "models/decoder/decoder_config.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gainlens::models {

/// What ALiBi adds to the score of a query and a key at each distance, [head, distance], float64: -slope_h distance,
/// times the factor. By the distance and not by the key's position, though no softmax would see the difference: slope
/// times position grows with the text, and at 32k positions float32 would keep three digits of what tells two
/// neighbours apart.
///
/// Slopes: 2^(-8 i / n), i = 1..n, n the largest power of two up to `heads`; where heads are left, the odd powers of
/// 2^(-4 / n). Source: Press, Smith, Lewis, "Train Short, Test Long" (2022).
/// @param alibi  without rounding
at::Tensor alibi_distance_bias(const Alibi& alibi, std::int64_t heads, std::int64_t positions);

/// For families that round, what they add to the scores of each key, [head, key], float64: slope_h j times the factor,
/// slopes, positions and products rounded to bfloat16 as theirs are. The rounding depends on the position, so the
/// distance would not do.
/// @param alibi  with bfloat16 rounding
at::Tensor alibi_key_bias(const Alibi& alibi, std::int64_t heads, std::int64_t positions);

}  // namespace gainlens::models
