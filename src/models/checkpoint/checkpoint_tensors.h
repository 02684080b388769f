#pragma once

#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/tensor_slots.h"
#include "models/decoder/decoder_weights.h"

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace gainlens::models {

/// Checks every tensor of a checkpoint by name, shape and dtype. No value is read. A tied pair is compared if the file
/// has both tensors.
/// @throws InvalidArgument  tensors that are missing, surplus, of the wrong shape or of a dtype that is not read (all
///     in one message); a tied pair that differs
void check_tensors(const CheckpointSource& source);

/// Reads the tensors outside the layers.
/// @throws InvalidArgument  as read_values
DecoderWeights load_outer(const CheckpointSource& source, at::ScalarType dtype);

/// Reads the tensors of one layer.
LayerWeights load_layer(const CheckpointSource& source, std::int64_t layer, at::ScalarType dtype);

}  // namespace gainlens::models
