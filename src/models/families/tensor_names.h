#pragma once

#include <cstdint>
#include <string_view>

namespace gainlens::models {

/// How the rows of several projections are joined in one stored tensor.
enum class RowOrder {
  sequential,   ///< all rows of the first, then all of the second, ...
  grouped,      ///< for each KV head: its rows of the first, then its rows of the second, ...
  alternating,  ///< one row of each in turn
};

/// The names of the tensors of DecoderWeights in a checkpoint. They are module names, to which ".weight" and ".bias"
/// are added. The defaults are the names in most families. The names in a layer are appended to `layer`, with its index
/// put in. An empty name means that the tensor is part of another one, or that there is none.
struct TensorNames {
  std::string_view prefix = "model.";  ///< of all names except the head; a checkpoint without it is read too
  std::string_view embedding = "embed_tokens";
  std::string_view position_embedding;
  std::string_view embedding_norm;
  std::string_view final_norm = "norm";
  std::string_view head = "lm_head";
  std::string_view layer = "layers.{}.";

  std::string_view attention_norm = "input_layernorm";
  /// One tensor for query, key and value, in this order. If it is set, `query`, `key` and `value` are not used.
  std::string_view query_key_value;
  RowOrder query_key_value_order = RowOrder::sequential;
  std::string_view query = "self_attn.q_proj";  ///< also holds the rows of an output gate, in RowOrder::grouped
  std::string_view gate_score;                  ///< of an output gate, if it has a tensor of its own
  bool gate_by_head = false;  ///< `query` holds the rows of each query head and then those of its gate
  /// Of latent attention. The tensor of `key_latent` ends with the rows of the rotated part of the keys; the one of
  /// `key_value_of_latent` has for each head the rows of its key, then of its value. `query` is used without
  /// `query_latent`. If `key_value_of_latent` is empty, `key_of_latent` has for each head its key rows, transposed, and
  /// `value_of_latent` its value rows, both as stacks over heads.
  std::string_view query_latent, query_latent_norm, query_of_latent;
  std::string_view key_latent, key_latent_norm, key_value_of_latent, key_of_latent, value_of_latent;
  std::string_view key = "self_attn.k_proj";
  std::string_view value = "self_attn.v_proj";
  std::string_view query_norm = "self_attn.q_norm";
  std::string_view key_norm = "self_attn.k_norm";
  std::string_view query_norm_of_head;  ///< QkNorm::heads, one tensor for each head: complete name, {} for its index
  std::string_view key_norm_of_head;
  std::string_view sink_logit;  ///< complete name
  std::string_view output = "self_attn.o_proj";
  std::string_view attention_post_norm;
  /// Rotated rows of query and key are stored pair by pair (GGUF's llama), not half by half.
  bool rotary_pairs = false;

  /// Of layers of the gated delta rule. `delta_projections` is one tensor for query, key, value and gate, grouped by
  /// key head. If it is empty, `delta_query_key_value` (sequential) and `delta_gate` are used. `delta_rates` is one
  /// tensor for beta and decay, grouped by key head. If it is empty, `delta_beta` and `delta_decay` are used.
  std::string_view delta_projections, delta_query_key_value, delta_gate;
  std::string_view delta_rates, delta_beta, delta_decay;
  std::string_view delta_convolution;
  std::string_view delta_log_rate, delta_decay_bias;  ///< complete names
  std::string_view delta_norm, delta_output;
  bool delta_rate_exponential = false;  ///< `delta_log_rate` holds -exp of the logarithm (GGUF)
  /// Value heads are stored in turns: the first of every key head, the second of every key head, .. (GGUF). Else those
  /// of the first key head come first.
  bool delta_heads_tiled = false;

  /// Of layers of short convolutions. `convolution_projection` is one tensor for the gate, the output gate and the
  /// input.
  std::string_view convolution_projection, convolution, convolution_output;

  std::string_view mlp_norm = "post_attention_layernorm";
  std::string_view mlp_gate_up;  ///< one tensor for both, in this order
  std::string_view mlp_gate = "mlp.gate_proj";
  std::string_view mlp_up = "mlp.up_proj";
  std::string_view mlp_down = "mlp.down_proj";
  std::string_view mlp_post_norm;
  bool transposed = false;  ///< attention and MLP projections are stored [in, out]

  std::string_view router;
  std::string_view router_correction;                    ///< complete name
  std::string_view expert_gate, expert_up, expert_down;  ///< with {}: one tensor for each expert; else one stack
  std::string_view expert_gate_up;       ///< complete name of one stack [experts, width, gate and up alternating]
  std::string_view expert_gate_up_bias;  ///< complete name
  std::string_view expert_down_stack;    ///< complete name of the stack [experts, expert width, width]
  /// The stacks are [experts, gate and then up, width] and [experts, width, expert width].
  bool expert_stacks_by_output = false;
  std::string_view expert_down_bias;                     ///< complete name
  std::string_view shared_gate, shared_up, shared_down;  ///< of the expert that every token passes
  std::string_view shared_gate_up;                       ///< one tensor for both, in this order
  std::string_view shared_score;                         ///< whose sigmoid multiplies its output
};

}  // namespace gainlens::models
