#pragma once

#include "models/checkpoint/checkpoint_source.h"
#include "models/decoder/decoder_weights.h"

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>

namespace gainlens::models {

/// In what, and where, a model computes.
struct ComputePlace {
  at::ScalarType dtype;
  at::Device device = at::kCPU;
};

/// Reads the tensors outside the layers.
/// @throws InvalidArgument  as read_values
DecoderWeights load_outer(const CheckpointSource& source, const ComputePlace& place);

/// Reads the tensors of one layer.
LayerWeights load_layer(const CheckpointSource& source, std::int64_t layer, const ComputePlace& place);

}  // namespace gainlens::models
