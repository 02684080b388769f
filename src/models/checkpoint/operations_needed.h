#pragma once

#include "models/decoder/decoder_config.h"

#include <cstdint>

namespace gainlens::models {

/// Multiplications and additions (each counts) of one sequence, by what does them. Norms, activations and rotations are
/// left out: they take a few percent of the time of a large model.
struct OperationsNeeded {
  /// Of activations with the weights of the layers: 2 for each weight and token. Linear attention is among them.
  double products = 0;
  double attention = 0;   ///< q k^T, the weighted values and their squares: 6 d for each head and visible pair
  double likelihood = 0;  ///< of the stream with the output head
};

/// @param positions  > 0
/// @throws InvalidArgument  `positions` is not positive
OperationsNeeded operations_needed(const DecoderConfig& config, std::int64_t positions);

}  // namespace gainlens::models
