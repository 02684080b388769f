#pragma once

#include "recommend/sasrec_config.h"
#include "recommend/sasrec_weights.h"

namespace gainlens::recommend {

struct StoredSasRec {
  SasRecConfig config;
  SasRecWeights weights;  ///< float32, without gradients
};

/// The weights of a model in the layout of gainlens.
/// @throws InvalidArgument  as `source`; a number that no training writes
SasRecWeights stored_sasrec_weights(const SasRecConfig& config, const WeightSource& source);

}  // namespace gainlens::recommend
