#pragma once

#include "models/checkpoint/checkpoint_source.h"
#include "models/decoder/decoder_weights.h"

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace gainlens::models {

/// Reads the tensors outside the layers.
/// @throws InvalidArgument  as read_values
DecoderWeights load_outer(const CheckpointSource& source, at::ScalarType dtype);

/// Reads the tensors of one layer.
LayerWeights load_layer(const CheckpointSource& source, std::int64_t layer, at::ScalarType dtype);

}  // namespace gainlens::models
