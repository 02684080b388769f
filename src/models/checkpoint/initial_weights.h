#pragma once

#include "models/checkpoint/named_tensor.h"
#include "models/decoder/decoder_config.h"
#include "models/decoder/decoder_weights.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::models {

/// The name of a tensor that is stored as a stack (experts, norms of single heads), which training does not know; empty
/// if there is none.
std::string stacked_tensor(const DecoderConfig& config);

/// The weights at the start of a decoder's training, float32, each a leaf that requires gradients. Projections are
/// normal with variance 1/fan-in. The two that write into the residual stream are narrower by sqrt(2 layers) (Radford
/// et al., 2019), so that its variance does not grow with depth. Embeddings are normal with standard deviation 0.02.
/// Norms are 1 and biases are 0. A tied head is the embedding itself.
///
/// The weights of a filter start where its options say; the hidden layer of its network is normal with variance
/// 1/fan-in, and the output layer is 0. The other weights are those of the same model without a filter.
/// @param seed  the same seed gives the same weights
DecoderWeights initial_weights(const DecoderConfig& config, std::uint64_t seed);

using bft::WeightRole;

/// The parameters of a decoder in one role, by the names that a checkpoint gives them. Exception: if a
/// stored tensor holds several parameters, those after the first have a further word ("...q_proj.gate").
///
/// If an adapter is trained (LayerWeights::low_rank), its factors stand in the place of the weights of the base, which
/// are no parameters: "...q_proj.lora_A.weight", once for each stored tensor, and "...q_proj.lora_B.weight".
std::vector<NamedTensor> decoder_parameters(const DecoderConfig& config, DecoderWeights& weights,
                                            WeightRole role = WeightRole::weight);

}  // namespace gainlens::models
