#pragma once

#include "models/decoder_config.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gainlens::models {

/// What ALiBi adds to the scores of each key, [head, key], float64: slope_h j. It differs from -slope_h (t - j) by the same number for all
/// keys of a query, which no softmax sees.
///
/// Slopes: 2^(-8 i / n), i = 1..n, n the largest power of two up to `heads`; where heads are left, the odd powers of 2^(-4 / n).
/// Source: Press, Smith, Lewis, "Train Short, Test Long" (2022).
at::Tensor alibi_bias(const Alibi& alibi, std::int64_t heads, std::int64_t positions);

}  // namespace gainlens::models
