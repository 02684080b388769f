#pragma once

#include "models/decoder/decoder_config.h"
#include "models/decoder/decoder_weights.h"

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace gainlens::models {

/// Checks that the layer has every tensor that the configuration asks for, with its shape and this dtype, and no other
/// tensor.
/// @throws InternalError  names the tensor and the fault. Files are checked when they are read, so weights that do not
///     fit are a mistake of the program.
void check_layer_shapes(const DecoderConfig& config, std::int64_t layer, LayerWeights weights, at::ScalarType dtype);

/// The same check for the tensors outside the layers. All must have the dtype of the embedding, which must be of
/// floating point.
void check_outer_shapes(const DecoderConfig& config, DecoderWeights weights);

}  // namespace gainlens::models
