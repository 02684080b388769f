#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace gainlens::models {

/// One layer, in the compute dtype. Projections are [out, in] as in the checkpoint; undefined tensors are absent.
struct LayerWeights {
  at::Tensor attention_norm;               ///< [width]
  at::Tensor query, query_bias;            ///< [heads head_dim, width]
  at::Tensor gate_score, gate_score_bias;  ///< headwise [heads, width]; elementwise [heads head_dim, width]: split off q_proj when loaded
  at::Tensor key, key_bias;                ///< [kv_heads head_dim, width]
  at::Tensor value, value_bias;            ///< [kv_heads head_dim, width]
  at::Tensor output, output_bias;          ///< [width, heads head_dim]
  at::Tensor query_norm, key_norm;         ///< [head_dim]
  at::Tensor mlp_norm;                     ///< [width]
  at::Tensor mlp_gate, mlp_gate_bias;      ///< [mlp_width, width]
  at::Tensor mlp_up, mlp_up_bias;          ///< [mlp_width, width]
  at::Tensor mlp_down, mlp_down_bias;      ///< [width, mlp_width]
};

struct DecoderWeights {
  at::Tensor embedding;  ///< [vocabulary, width]
  std::vector<LayerWeights> layers;
  at::Tensor final_norm;  ///< [width]
  at::Tensor head;        ///< [vocabulary, width]; the same tensor as embedding where tied
};

}  // namespace gainlens::models
