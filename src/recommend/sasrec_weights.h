#pragma once

#include "models/checkpoint/named_tensor.h"
#include "recommend/sasrec_config.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace gainlens::recommend {

/// A linear layer: weight [out, in] and bias [out].
struct LinearWeights {
  at::Tensor weight, bias;
};
/// A layer norm: weight and bias, [width].
struct NormWeights {
  at::Tensor weight, bias;
};

struct SasRecLayerWeights {
  NormWeights attention_norm, mlp_norm;
  LinearWeights query, key, value, output;
  LinearWeights up, down;
};

struct SasRecWeights {
  at::Tensor item_embedding;      ///< [items + 1, width]; row 0 is padding and never used. The head is tied to it
  at::Tensor position_embedding;  ///< [positions, width]
  NormWeights embedding_norm;     ///< undefined without `embedding_norm`
  std::vector<SasRecLayerWeights> layers;
  NormWeights final_norm;  ///< undefined with norms after the sums
};

/// A weight with its name in a checkpoint and the shape that the configuration gives it.
struct SasRecSlot {
  std::string name;
  std::vector<std::int64_t> shape;
  at::Tensor* tensor;
};

/// Every weight of such a model, in one order. Makes room for the layers.
std::vector<SasRecSlot> sasrec_slots(const SasRecConfig& config, SasRecWeights& weights);

/// Leaf tensors with gradients in float32. Matrices and embeddings are drawn from N(0, 0.02^2), biases are 0, norms 1.
/// Each weight is drawn from the seed and its own name: models that share a weight's name and shape share its start.
SasRecWeights initial_sasrec_weights(const SasRecConfig& config, std::uint64_t seed);

/// The weights by name, for an optimiser.
std::vector<models::NamedTensor> sasrec_parameters(const SasRecConfig& config, SasRecWeights& weights);

}  // namespace gainlens::recommend
