#include "models/decoder_shapes.h"

#include "core/error.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

namespace gainlens::models {
namespace {

class ShapeCheck {
 public:
  explicit ShapeCheck(at::ScalarType dtype) : dtype_(dtype) {}

  void tensor(std::int64_t layer, std::string_view name, const at::Tensor& found, const std::vector<std::int64_t>& expected) const {
    ASSERT(found.defined(), "decoder weights: {} of layer {} is missing", name, layer);
    ASSERT(found.sizes() == at::IntArrayRef(expected), "decoder weights: {} of layer {} is [{}]; the configuration asks for [{}]", name,
           layer, fmt::join(found.sizes().vec(), ", "), fmt::join(expected, ", "));
    ASSERT(found.scalar_type() == dtype_, "decoder weights: {} of layer {} is not of the embedding's dtype", name, layer);
  }

  void optional(bool wanted, std::int64_t layer, std::string_view name, const at::Tensor& found,
                const std::vector<std::int64_t>& expected) const {
    ASSERT(wanted == found.defined(), "decoder weights: {} of layer {} is {}, against the configuration", name, layer,
           wanted ? "missing" : "there");
    if (wanted) tensor(layer, name, found, expected);
  }

 private:
  at::ScalarType dtype_;
};

void check_attention(const ShapeCheck& check, const DecoderConfig& config, std::int64_t layer, const LayerWeights& weights) {
  const std::int64_t queries = config.heads * config.head_dim;
  const std::int64_t keys = config.kv_heads * config.head_dim;
  const std::int64_t gates = config.gate == Gate::headwise ? config.heads : queries;
  const bool gated = config.gate != Gate::none;
  check.tensor(layer, "attention_norm", weights.attention_norm, {config.width});
  check.tensor(layer, "query", weights.query, {queries, config.width});
  check.optional(config.qkv_bias, layer, "query_bias", weights.query_bias, {queries});
  check.optional(gated, layer, "gate_score", weights.gate_score, {gates, config.width});
  check.optional(gated && config.qkv_bias, layer, "gate_score_bias", weights.gate_score_bias, {gates});
  check.tensor(layer, "key", weights.key, {keys, config.width});
  check.optional(config.qkv_bias, layer, "key_bias", weights.key_bias, {keys});
  check.tensor(layer, "value", weights.value, {keys, config.width});
  check.optional(config.qkv_bias, layer, "value_bias", weights.value_bias, {keys});
  check.tensor(layer, "output", weights.output, {config.width, queries});
  check.optional(config.output_bias, layer, "output_bias", weights.output_bias, {config.width});
  check.optional(config.qk_norm, layer, "query_norm", weights.query_norm, {config.head_dim});
  check.optional(config.qk_norm, layer, "key_norm", weights.key_norm, {config.head_dim});
}

void check_mlp(const ShapeCheck& check, const DecoderConfig& config, std::int64_t layer, const LayerWeights& weights) {
  check.tensor(layer, "mlp_norm", weights.mlp_norm, {config.width});
  check.tensor(layer, "mlp_gate", weights.mlp_gate, {config.mlp_width, config.width});
  check.tensor(layer, "mlp_up", weights.mlp_up, {config.mlp_width, config.width});
  check.tensor(layer, "mlp_down", weights.mlp_down, {config.width, config.mlp_width});
  check.optional(config.mlp_bias, layer, "mlp_gate_bias", weights.mlp_gate_bias, {config.mlp_width});
  check.optional(config.mlp_bias, layer, "mlp_up_bias", weights.mlp_up_bias, {config.mlp_width});
  check.optional(config.mlp_bias, layer, "mlp_down_bias", weights.mlp_down_bias, {config.width});
}

}  // namespace

void check_shapes(const DecoderConfig& config, const DecoderWeights& weights) {
  const auto layers = static_cast<std::size_t>(config.layers);
  ASSERT(weights.layers.size() == layers, "decoder weights: {} layers; the configuration has {}", weights.layers.size(), layers);
  ASSERT(config.window.size() == layers, "decoder config: {} windows for {} layers", config.window.size(), layers);
  ASSERT(config.kv_heads > 0 && config.heads % config.kv_heads == 0, "decoder config: {} heads over {} kv heads", config.heads,
         config.kv_heads);
  ASSERT(weights.embedding.defined() && weights.embedding.is_floating_point(),
         "decoder weights: the embedding is missing or not floating point");
  const ShapeCheck check(weights.embedding.scalar_type());
  check.tensor(0, "embedding", weights.embedding, {config.vocabulary, config.width});
  check.tensor(0, "head", weights.head, {config.vocabulary, config.width});
  check.tensor(0, "final_norm", weights.final_norm, {config.width});
  for (std::size_t layer = 0; layer < layers; ++layer) {
    check_attention(check, config, static_cast<std::int64_t>(layer), weights.layers[layer]);
    check_mlp(check, config, static_cast<std::int64_t>(layer), weights.layers[layer]);
  }
}

}  // namespace gainlens::models
