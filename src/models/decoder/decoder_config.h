#pragma once

#include "bft/arm.h"
#include "kernels/linear/activation.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::models {

enum class RopeScaling { none, linear, llama3, yarn, longrope, stretched_base, proportional };

/// Rotary position embedding of one kind of layer.
struct RopeConfig {
  double base = 10000;
  /// Share of each head's dimensions that is rotated, the first ones ("partial rotary"). Proportional: share of the
  /// pairs (i, i + head_dim / 2) that is rotated, the first ones, by the frequencies that they have in a whole head.
  double rotated = 1;
  RopeScaling scaling = RopeScaling::none;
  /// linear, llama3, yarn, proportional; stretched_base: of the base, before its power
  double factor = 1;
  double low_frequency_factor = 1;          ///< llama3
  double high_frequency_factor = 4;         ///< llama3
  std::int64_t original_max_positions = 0;  ///< llama3, yarn, longrope
  double beta_fast = 32;                    ///< yarn
  double beta_slow = 1;                     ///< yarn
  std::optional<double> attention_factor;   ///< yarn, longrope: factor on cos and sin; yarn default 0.1 ln(factor) + 1
  double score_magnitude = 1;               ///< yarn: m(factor, mscale_all_dim), whose square some families put on q.k
  bool truncate = true;                     ///< yarn: round the correction range to whole dimensions
  std::vector<double> short_factors;        ///< longrope: divide each pair's frequency up to original_max_positions
  std::vector<double> long_factors;         ///< longrope: divide each pair's frequency in longer sequences

  bool operator==(const RopeConfig&) const = default;
};

/// How the model encodes the position of a token.
enum class Positions {
  rotary,   ///< queries and keys are rotated
  learned,  ///< a learned vector for each position is added to the embedding
  alibi,    ///< scores fall linearly with the distance; each head has its own slope
};

/// Sigmoid gate on the attention output, before the output projection (qiuzh20/gated_attention).
enum class Gate { none, headwise, elementwise };

using kernels::Activation;

enum class Norm { rms, layer };

/// Normalisation of queries and keys, before rotation.
enum class QkNorm {
  none,
  head,   ///< RMSNorm over head_dim, one weight for all heads
  heads,  ///< LayerNorm over head_dim, a weight for each head
  whole,  ///< RMSNorm over all heads at once
};

/// Latent attention: each position has one short row, from which the keys and values of all heads are expanded, and one
/// rotated part of the keys, which all heads share. Each head then attends as usual, with keys of `head_dim`
/// dimensions. Source: DeepSeek-V2, arXiv:2405.04434; DeepseekV2Attention of Hugging Face transformers.
struct LatentAttention {
  std::int64_t key_rank = 0;    ///< numbers of that row; 0: keys and values are projected from the stream
  std::int64_t query_rank = 0;  ///< numbers of a row from which queries are expanded; 0: they are projected
  std::int64_t rotated = 0;     ///< dimensions of each query and key that are rotated: the last ones
};

/// How a router turns logits into scores, of which the best experts are chosen.
enum class RouterScores { softmax, sigmoid };

/// Feed-forward layers, of which a linear router chooses a few for each token.
struct Experts {
  std::int64_t count = 0;  ///< 0: one feed-forward layer for all tokens
  std::int64_t per_token = 0;
  std::int64_t width = 0;  ///< of each expert
  bool normalised = true;  ///< the weights of the chosen experts sum to 1, before `scale`; else they are their scores
  RouterScores scores = RouterScores::softmax;
  bool router_bias = false;
  bool router_correction = false;  ///< a number for each expert is added to the scores that choose, not to the weights
  bool router_wide = false;        ///< logits and weights are computed in float32 for narrower types
  std::int64_t groups = 1;         ///< experts stand in groups of the same size
  std::int64_t kept_groups = 1;    ///< a token chooses among the experts of that many groups
  std::int64_t group_leaders = 1;  ///< the groups are those with the largest sum of that many best scores
  double scale = 1;                ///< factor on the weights of the chosen experts
  bool bias = false;               ///< on the experts' projections
  std::int64_t shared_width = 0;   ///< of an expert that every token passes, beside the chosen ones; 0: there is none
  bool shared_score = false;       ///< its output is multiplied by the sigmoid of a linear score of the token
  std::vector<bool> layers;        ///< [layer] whether the layer has experts; empty: all have
};

/// Layers of linear attention by the gated delta rule, in place of softmax attention. They have no attention weights.
/// Source: kernels/delta/gated_delta_rule.h; Qwen3NextGatedDeltaNet of Hugging Face transformers.
struct DeltaLayers {
  std::vector<bool> layers;  ///< [layer] whether it is one of them; empty: none is
  std::int64_t key_heads = 0;
  std::int64_t value_heads = 0;  ///< a multiple of key_heads
  std::int64_t key_dim = 0;      ///< of each head
  std::int64_t value_dim = 0;    ///< of each head
  std::int64_t kernel = 0;       ///< positions that the short convolution before the rule reads

  std::int64_t keys() const { return key_heads * key_dim; }
  std::int64_t values() const { return value_heads * value_dim; }
};

/// Layers of gated short convolutions, in place of softmax attention. They have no attention weights.
/// Source: decoder/convolution_layer.h; Lfm2ShortConv of Hugging Face transformers.
struct ConvolutionLayers {
  std::vector<bool> layers;  ///< [layer] whether it is one of them; empty: none is
  std::int64_t kernel = 0;   ///< positions that the convolution reads
  bool bias = false;         ///< of the convolution and of the projections
};

/// A gated feed-forward layer that clips: the gate to at most `limit`, up to +-`limit`. The result is (up + 1) gate
/// sigmoid(alpha gate).
struct ClippedGate {
  double limit = 7;
  double alpha = 1.702;
};

/// Details of Positions::alibi.
struct Alibi {
  double factor = 1;      ///< on what is added to the scores
  bool bfloat16 = false;  ///< slopes, positions and their products are rounded to bfloat16, as in the family's own code
};

/// What one decoder computes, independent of the name of its family. Each option is named after its effect.
struct DecoderConfig {
  std::string family;  ///< as the checkpoint names it: "llama", "qwen3", ...
  std::int64_t layers = 0;
  std::int64_t width = 0;  ///< of the residual stream
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;                   ///< if layers differ, the largest number
  std::vector<std::int64_t> layer_kv_heads;    ///< [layer] KV heads, each a divisor of kv_heads; empty: kv_heads in all
  std::int64_t head_dim = 0;                   ///< of queries and keys
  std::optional<std::int64_t> value_head_dim;  ///< of values; empty: as head_dim
  std::int64_t mlp_width = 0;
  std::int64_t vocabulary = 0;
  std::int64_t max_positions = 0;  ///< trained or declared context, after any RoPE scaling the config declares

  double embedding_scale = 1;   ///< factor on the embedded tokens; it is rounded to the compute dtype
  bool embedding_norm = false;  ///< the embedded tokens are normalised
  Positions positions = Positions::rotary;
  Alibi alibi;
  std::int64_t position_offset = 0;  ///< Positions::learned: position 0 has this row of the table
  RopeConfig rope;
  std::optional<RopeConfig> window_rope;  ///< of the layers with a window; empty: the same
  std::vector<bool> unrotated;            ///< [layer] Positions::rotary: this layer does not rotate; empty: all rotate

  Norm norm = Norm::rms;
  double norm_epsilon = 1e-6;
  double norm_offset = 0;          ///< added to every norm's weight: the stored weights are smaller by this
  bool norm_bias = false;          ///< layer norms add a bias
  bool pre_norm = true;            ///< attention and MLP read a normalised stream
  bool post_norm = false;          ///< their results are normalised before they are added to the stream
  bool parallel_residual = false;  ///< attention and MLP read the same stream, and both are added to it
  bool shared_norm = false;        ///< with parallel_residual: the MLP reads the result of attention's norm
  double residual_scale = 1;       ///< factor on the results of attention and MLP, before they are added

  bool qkv_bias = false;
  bool output_bias = false;        ///< on the attention's output projection
  std::optional<double> qkv_clip;  ///< projected queries, keys and values are clipped to +- this
  double value_scale = 1;          ///< factor on projected values
  QkNorm qk_norm = QkNorm::none;
  bool rotated_before_norm = false;  ///< qk_norm comes after the rotation
  double attention_scale = 0;        ///< factor on q.k; 0: 1/sqrt(head_dim)
  bool scale_by_layer = false;       ///< the factor is divided by the layer's number, counted from 1
  double attention_soft_cap = 0;     ///< score s becomes cap tanh(s / cap); 0: no cap
  bool sink_logits = false;          ///< each head has a learned logit in the softmax, without a value
  std::vector<bool> sink_layers;     ///< with sink_logits: [layer] whether its heads have one; empty: all have
  std::vector<std::int64_t> window;  ///< [layer] number of visible keys, including the query itself; 0: global
  Gate gate = Gate::none;
  LatentAttention latent;
  DeltaLayers delta;
  ConvolutionLayers convolution;

  bool gated_mlp = true;  ///< down(act(gate) * up), else down(act(up))
  bool mlp_bias = false;
  Activation activation = Activation::silu;
  std::optional<ClippedGate> clipped_gate;
  Experts experts;

  /// The Bayesian filter: a precision follows the stream, and the gain K acts on the result of each head, before the
  /// output projection. Source: docs/bft.md. Absent: the decoder is plain.
  std::optional<bft::FilterOptions> filter;
  bft::Arm filter_arm = bft::Arm::bft;  ///< with a filter: all of it, or a part of it as a control

  bool tied_head = false;     ///< the output head is the embedding
  bool head_bias = false;     ///< the output head adds a bias
  double logit_scale = 1;     ///< factor on the logits
  double logit_soft_cap = 0;  ///< as attention_soft_cap, on the scaled logits
  std::optional<std::int64_t> bos_token;

  bool has_experts(std::int64_t layer) const {
    return experts.count > 0 && (experts.layers.empty() || experts.layers.at(static_cast<std::size_t>(layer)));
  }
  bool rotates(std::int64_t layer) const {
    return positions == Positions::rotary && (unrotated.empty() || !unrotated.at(static_cast<std::size_t>(layer)));
  }
  bool has_latent() const { return latent.key_rank > 0; }
  /// KV heads of a layer.
  std::int64_t kv_heads_of(std::int64_t layer) const {
    return layer_kv_heads.empty() ? kv_heads : layer_kv_heads.at(static_cast<std::size_t>(layer));
  }
  /// Whether the heads of a layer have a learned sink logit.
  bool has_sink_logits(std::int64_t layer) const {
    return sink_logits && (sink_layers.empty() || sink_layers.at(static_cast<std::size_t>(layer)));
  }
  /// Dimensions of a head's values.
  std::int64_t value_dim() const { return value_head_dim.value_or(head_dim); }
  /// Dimensions of a head of which RopeConfig::rotated is a share.
  std::int64_t rotary_dim() const { return has_latent() ? latent.rotated : head_dim; }
  /// Whether the layer is one of linear attention by the gated delta rule.
  bool has_delta(std::int64_t layer) const {
    return !delta.layers.empty() && delta.layers.at(static_cast<std::size_t>(layer));
  }
  /// Whether the layer is one of short convolutions.
  bool has_convolution(std::int64_t layer) const {
    return !convolution.layers.empty() && convolution.layers.at(static_cast<std::size_t>(layer));
  }
  /// Whether the layer has softmax attention.
  bool attends(std::int64_t layer) const { return !has_delta(layer) && !has_convolution(layer); }
  /// What the layers without softmax attention have in its place, in words.
  std::string_view without_attention() const {
    return convolution.layers.empty() ? "linear attention (the gated delta rule)" : "short convolutions";
  }
  /// Number of layers with softmax attention among the first `count`.
  std::int64_t attention_layers(std::int64_t count) const {
    std::int64_t found = 0;
    for (std::int64_t layer = 0; layer < count; ++layer) found += attends(layer) ? 1 : 0;
    return found;
  }
  bft::Filter armed_filter() const { return filter ? bft::Filter{filter_arm, *filter} : bft::Filter(); }
  const RopeConfig& rope_of(std::int64_t layer) const {
    return window_rope && window.at(static_cast<std::size_t>(layer)) > 0 ? *window_rope : rope;
  }
};

}  // namespace gainlens::models
