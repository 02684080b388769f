#pragma once

#include "models/decoder_config.h"
#include "models/decoder_weights.h"

namespace gainlens::models {

/// That every tensor the configuration asks for is there, in its shape, all of one floating-point dtype, and no other.
/// @throws InternalError  what is wrong with which tensor: files are checked when they are read, so weights that do not fit are our mistake
void check_shapes(const DecoderConfig& config, const DecoderWeights& weights);

}  // namespace gainlens::models
