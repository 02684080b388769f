#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::models {

enum class RopeScaling { none, linear, llama3, yarn };

/// Rotary position embedding of one kind of layer.
struct RopeConfig {
  double base = 10000;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;                          ///< linear, llama3, yarn
  double low_frequency_factor = 1;            ///< llama3
  double high_frequency_factor = 4;           ///< llama3
  std::int64_t original_max_positions = 0;    ///< llama3, yarn
  double beta_fast = 32;                      ///< yarn
  double beta_slow = 1;                       ///< yarn
  std::optional<double> attention_factor;     ///< yarn: factor on cos and sin; default 0.1 ln(factor) + 1 (or from mscale keys)
  bool truncate = true;                       ///< yarn: round the correction range to whole dimensions
};

/// Sigmoid gate on the attention output, before the output projection (qiuzh20/gated_attention).
enum class Gate { none, headwise, elementwise };

enum class Activation { silu, gelu_tanh, gelu_erf };

/// What one decoder computes, whatever family its checkpoint calls itself. Each option is named after what it is.
struct DecoderConfig {
  std::string family;               ///< as the checkpoint names it: "llama", "qwen3", ...
  std::int64_t layers = 0;
  std::int64_t width = 0;           ///< of the residual stream
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t mlp_width = 0;
  std::int64_t vocabulary = 0;
  std::int64_t max_positions = 0;   ///< trained or declared context, after any RoPE scaling the config declares
  double norm_epsilon = 1e-6;
  Activation activation = Activation::silu;
  bool qkv_bias = false;
  bool output_bias = false;         ///< on the attention's output projection
  bool mlp_bias = false;
  bool qk_norm = false;             ///< RMSNorm over head_dim on queries and keys, before rotation
  Gate gate = Gate::none;
  bool tied_head = false;           ///< the output head is the embedding
  RopeConfig rope;
  std::vector<std::int64_t> window; ///< [layer] visible keys including the query itself; 0: global
  std::optional<std::int64_t> bos_token;
};

}  // namespace gainlens::models
