#pragma once

#include "models/decoder/rope_frequencies.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gainlens::models {

/// cos and sin of every angle, times the attention factor.
struct RopeTables {
  at::Tensor cosine, sine;  ///< [position, rotated / 2]
};

/// Angles, cosines and sines are computed in float64, then cast to the type of `like` on its device.
/// @param first  the position of the first row
RopeTables rope_tables(const RopeFrequencies& frequencies, std::int64_t positions, const at::TensorOptions& like,
                       std::int64_t first = 0);

/// Rotates the pairs (i, i + r/2) of the first r dimensions of each head (the "rotate half" layout). r is twice the
/// width of the tables.
/// @param heads  [batch, position, head, head_dim], dtype of the tables
at::Tensor rotate(const at::Tensor& heads, const RopeTables& tables);

}  // namespace gainlens::models
