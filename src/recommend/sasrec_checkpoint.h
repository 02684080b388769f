#pragma once

#include "recommend/sasrec_config.h"
#include "recommend/sasrec_weights.h"

namespace gainlens::recommend {

struct StoredSasRec {
  SasRecConfig config;
  SasRecWeights weights;  ///< float32, without gradients
};

}  // namespace gainlens::recommend
