#pragma once

#include "bft/filter_weights.h"
#include "recommend/hstu_config.h"
#include "recommend/layer_weights.h"
#include "recommend/weight_slot.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace gainlens::recommend {

struct HstuLayerWeights {
  NormWeights attention_norm;  ///< as `attended_norm`: 1 and 0, and no weights of the model, if the norms have none
  at::Tensor uvqk;             ///< [4 width, width]: rows of the gate u, the values v, the queries q and the keys k
  at::Tensor place_bias;       ///< [positions]: of a score, by the number of places between query and key
  at::Tensor time_bias;        ///< [bucket]: by the time between them; undefined without `time_bias`
  NormWeights attended_norm;   ///< of what attention gives, all heads beside each other
  LinearWeights output;        ///< undefined in arms without the output projection
  NormWeights mlp_norm;        ///< this and the MLP are undefined in arms without one
  LinearWeights up, down;
  bft::FilterWeights filter;
};

struct HstuWeights {
  at::Tensor item_embedding;               ///< [items + 1, width]; row 0 is padding. The head is tied to it
  at::Tensor position_embedding;           ///< [positions, width]
  NormWeights embedding_norm;              ///< undefined without `embedding_norm`
  bft::InitialPrecisionWeights precision;  ///< undefined in arms without precisions
  std::vector<HstuLayerWeights> layers;
  NormWeights final_norm;  ///< undefined with `output` unit
};

/// Every weight of such a model, in one order. Makes room for the layers.
std::vector<WeightSlot> hstu_slots(const HstuConfig& config, HstuWeights& weights);

/// Leaf tensors in float32, with gradients but for the constants. Matrices and biases of scores are drawn from
/// N(0, 0.02^2), embeddings from a normal of their own deviation; other biases are 0, norms 1.
HstuWeights initial_hstu_weights(const HstuConfig& config, std::uint64_t seed);
/// The weights of a stored model.
/// @throws InvalidArgument  as `source`; a number that no training writes
HstuWeights stored_hstu_weights(const HstuConfig& config, const WeightSource& source);

}  // namespace gainlens::recommend
