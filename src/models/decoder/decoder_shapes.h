#pragma once

#include "models/decoder/decoder_config.h"
#include "models/decoder/decoder_weights.h"

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace gainlens::models {

/// That every tensor the configuration asks for in this layer is there, in its shape and of this dtype, and no other.
/// @throws InternalError  what is wrong with which tensor: files are checked when they are read, so weights that do not
///     fit are our mistake
void check_layer_shapes(const DecoderConfig& config, std::int64_t layer, LayerWeights weights, at::ScalarType dtype);

/// The same of the tensors outside the layers; all must be of the embedding's dtype, which must be a floating-point
/// one.
void check_outer_shapes(const DecoderConfig& config, DecoderWeights weights);

}  // namespace gainlens::models
