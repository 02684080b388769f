#pragma once

#include "models/decoder/decoder_config.h"

#include <cstdint>
#include <vector>

namespace gainlens::models {

/// The angles of each pair of dimensions, and the factor on cos and sin that belongs to them.
struct RopeFrequencies {
  std::vector<double> inverse;  ///< [rotated / 2] radians per position
  double attention_factor = 1;  ///< yarn, longrope; else 1
};

/// Number of dimensions of each head that are rotated.
/// @throws InvalidArgument  it is odd or 0
std::int64_t rotated_dimensions(const RopeConfig& config, std::int64_t head_dim);

/// @param positions  of the sequence: longrope has other frequencies for long sequences
/// @throws InvalidArgument  the rotated part of head_dim is odd or 0; the scaling cannot use the base, factor, band or
///     original length
/// Source: the conventions of Hugging Face transformers, modeling_rope_utils.py. Computed in float64 here, in float32
/// there.
RopeFrequencies rope_frequencies(const RopeConfig& config, std::int64_t head_dim, std::int64_t positions);

}  // namespace gainlens::models
