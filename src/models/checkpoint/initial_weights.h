#pragma once

#include "models/checkpoint/named_tensor.h"
#include "models/decoder/decoder_config.h"
#include "models/decoder/decoder_weights.h"

#include <cstdint>
#include <vector>

namespace gainlens::models {

/// Weights a decoder's training starts from, float32, each a leaf that requires gradients: projections normal with
/// variance 1/fan-in, the two that write into the residual stream narrower by sqrt(2 layers) (Radford et al., 2019), so
/// that its variance does not grow with depth; embeddings normal with standard deviation 0.02; norms 1, biases 0. A
/// tied head is the embedding itself.
/// @param seed  the same seed gives the same weights
DecoderWeights initial_weights(const DecoderConfig& config, std::uint64_t seed);

/// The parameters of a decoder by the names a checkpoint gives them, but for the gate's rows, which stand apart
/// ("...q_proj.gate").
std::vector<NamedTensor> decoder_parameters(const DecoderConfig& config, DecoderWeights& weights);

}  // namespace gainlens::models
