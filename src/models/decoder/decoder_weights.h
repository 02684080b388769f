#pragma once

#include "bft/filter_weights.h"
#include "models/decoder/weight_fields.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <string_view>
#include <vector>

namespace gainlens::models {

/// What an adapter adds to a projection in training: scale B A, and W keeps its values.
struct LowRank {
  at::Tensor down;  ///< A [rank, in]; projections that share a stored tensor share it
  at::Tensor up;    ///< B [out, rank]
  double scale = 1;

  bool defined() const { return up.defined(); }
};

/// One layer, in the compute dtype. Projections are [out, in]; undefined tensors are absent.
struct LayerWeights {
  at::Tensor attention_norm, attention_norm_bias;  ///< [width]
  at::Tensor query_latent, query_latent_bias;      ///< [query_rank, width] of latent attention
  at::Tensor query_latent_norm;                    ///< [query_rank]
  at::Tensor key_latent, key_latent_bias;          ///< [key_rank, width]
  at::Tensor key_rotated, key_rotated_bias;        ///< [rotated, width]
  at::Tensor key_latent_norm;                      ///< [key_rank]
  at::Tensor query, query_bias;                    ///< [heads head_dim, width]; latent [.., query_rank]
  at::Tensor gate_score, gate_score_bias;          ///< headwise [heads, width]; elementwise [heads head_dim, width]
  at::Tensor key, key_bias;            ///< [kv_heads head_dim, width]; latent [heads (head_dim - rotated), key_rank]
  at::Tensor value, value_bias;        ///< [kv_heads head_dim, width]; latent [heads value_dim, key_rank]
  at::Tensor query_norm, key_norm;     ///< QkNorm::head [head_dim]; heads [.., head_dim]; whole [.. head_dim]
  at::Tensor sink_logit;               ///< [heads]
  at::Tensor output, output_bias;      ///< [width, heads value_dim]
  at::Tensor delta_query, delta_key;   ///< [key_heads key_dim, width] of a layer of the gated delta rule
  at::Tensor delta_value, delta_gate;  ///< [value_heads value_dim, width]
  at::Tensor delta_beta, delta_decay;  ///< [value_heads, width]
  at::Tensor delta_convolution;        ///< [queries, keys, then values, 1, kernel]
  at::Tensor delta_log_rate;           ///< [value_heads] log of the factor of a decay's rate ("A_log")
  at::Tensor delta_decay_bias;         ///< [value_heads] ("dt_bias")
  at::Tensor delta_norm;               ///< [value_dim]
  at::Tensor delta_output;             ///< [width, value_heads value_dim]
  at::Tensor convolution_gate, convolution_gate_bias;  ///< [width, width] of a layer of short convolutions
  at::Tensor convolution_output_gate, convolution_output_gate_bias;  ///< [width, width]
  at::Tensor convolution_input, convolution_input_bias;              ///< [width, width]
  at::Tensor convolution, convolution_bias;                          ///< [width, 1, kernel]
  at::Tensor convolution_output, convolution_output_bias;            ///< [width, width]
  at::Tensor attention_post_norm;                                    ///< [width]
  at::Tensor mlp_norm, mlp_norm_bias;                                ///< [width]
  at::Tensor mlp_gate, mlp_gate_bias;                                ///< [mlp_width, width]
  at::Tensor mlp_up, mlp_up_bias;                                    ///< [mlp_width, width]
  at::Tensor mlp_down, mlp_down_bias;                                ///< [width, mlp_width]
  at::Tensor router, router_bias;                                    ///< [experts, width]
  at::Tensor router_correction;                                      ///< [experts], float32 or float64
  at::Tensor expert_gate, expert_gate_bias;                          ///< [experts, expert width, width]
  at::Tensor expert_up, expert_up_bias;                              ///< [experts, expert width, width]
  at::Tensor expert_down, expert_down_bias;                          ///< [experts, width, expert width]
  at::Tensor shared_gate, shared_gate_bias;      ///< [shared width, width] of the expert that every token passes
  at::Tensor shared_up, shared_up_bias;          ///< [shared width, width]
  at::Tensor shared_down, shared_down_bias;      ///< [width, shared width]
  at::Tensor shared_score;                       ///< [1, width]
  at::Tensor mlp_post_norm;                      ///< [width]
  std::map<std::string_view, LowRank> low_rank;  ///< by the field of the projection; empty: no adapter is trained
  bft::FilterWeights filter;  ///< the last layer has what attention reads alone: no layer reads the precision after it
};

struct DecoderWeights {
  at::Tensor embedding;                            ///< [vocabulary, width]
  at::Tensor position_embedding;                   ///< [position_offset + max_positions, width]
  at::Tensor embedding_norm, embedding_norm_bias;  ///< [width]
  bft::InitialPrecisionWeights precision;          ///< of tokens; tau_base is 1 for each
  std::vector<LayerWeights> layers;
  at::Tensor final_norm, final_norm_bias;  ///< [width]
  at::Tensor head;                         ///< [vocabulary, width]; the same tensor as `embedding` if tied
  at::Tensor head_bias;                    ///< [vocabulary]
};

/// Tensors by the names of their fields (weight_fields.h).
using TensorsByField = std::map<std::string_view, at::Tensor*>;

/// Every tensor of one layer.
TensorsByField tensors_by_field(LayerWeights& weights);
/// Every tensor outside the layers.
TensorsByField tensors_by_field(DecoderWeights& weights);

}  // namespace gainlens::models
