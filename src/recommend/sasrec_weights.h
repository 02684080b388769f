#pragma once

#include "bft/filter_weights.h"
#include "recommend/layer_weights.h"
#include "recommend/sasrec_config.h"
#include "recommend/weight_slot.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::recommend {

struct SasRecLayerWeights {
  NormWeights attention_norm, mlp_norm;
  LinearWeights query, key, value, output;  ///< `output` is undefined in arms without the output projection
  LinearWeights up, down;
  bft::FilterWeights filter;
};

struct SasRecWeights {
  at::Tensor item_embedding;               ///< [ids, width]; row 0 is padding and never used. The head is tied to it
  at::Tensor position_embedding;           ///< [positions, width]
  NormWeights embedding_norm;              ///< undefined without `embedding_norm`
  bft::InitialPrecisionWeights precision;  ///< undefined in arms without precisions
  std::vector<SasRecLayerWeights> layers;
  NormWeights final_norm;  ///< undefined without SasRecConfig::final_norm()
  // Of the head of BERT4Rec; undefined in SASRec.
  LinearWeights head_dense;
  NormWeights head_norm;
  at::Tensor head_bias;  ///< [items]
};

using SasRecSlot = WeightSlot;

/// Every weight of such a model, in one order. Makes room for the layers.
std::vector<SasRecSlot> sasrec_slots(const SasRecConfig& config, SasRecWeights& weights);

/// Leaf tensors in float32, with gradients but for the constants. Matrices are drawn from N(0, 0.02^2),
/// embeddings from a normal of their own deviation; biases are 0, norms 1; the weights of the filter start where its
/// options say, those that follow from data at 1 or 0. Each weight is drawn from the seed and its own name: models that
/// share a weight's name and shape share its start.
SasRecWeights initial_sasrec_weights(const SasRecConfig& config, std::uint64_t seed);

/// The weights of a model in the layout of gainlens.
/// @throws InvalidArgument  as `source`; a number that no training writes
SasRecWeights stored_sasrec_weights(const SasRecConfig& config, const WeightSource& source);

/// A model as files hold it.
struct StoredSasRec {
  SasRecConfig config;
  SasRecWeights weights;  ///< float32, without gradients
};

}  // namespace gainlens::recommend
