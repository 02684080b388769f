#pragma once

#include "models/decoder_config.h"
#include "models/decoder_weights.h"
#include "models/family.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::models {

/// One tensor a decoder needs from its checkpoint: what it is called there, its shape there, and where it goes.
struct TensorSlot {
  std::string name;
  std::vector<std::int64_t> shape;
  at::Tensor* target = nullptr;
  at::Tensor* gate_target = nullptr;  ///< of a query projection with gate rows: where these go, see gate_rows.h
};

/// Every tensor of a checkpoint of this configuration, embedding first, head last; the head is left out where it is tied.
/// @param weights  gets its layers; the slots point into it
std::vector<TensorSlot> tensor_slots(const DecoderConfig& config, const TensorNames& names, DecoderWeights& weights);

}  // namespace gainlens::models
