#pragma once

#include "models/decoder.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::testing {

/// A small configuration that exercises grouped queries: 2 layers, width 16, 4 heads on 2 kv heads of 4 dimensions.
inline models::DecoderConfig small_config() {
  models::DecoderConfig config;
  config.family = "test";
  config.layers = 2;
  config.width = 16;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 4;
  config.mlp_width = 24;
  config.vocabulary = 50;
  config.max_positions = 512;
  config.window = {0, 0};
  return config;
}

struct NamedConfig {
  std::string name;
  models::DecoderConfig config;
};

/// One configuration for each option a decoder has, and one with many at once.
inline std::vector<NamedConfig> every_option() {
  using models::RopeScaling;
  std::vector<NamedConfig> all;
  const auto add = [&](std::string name, auto change) {
    all.push_back({std::move(name), small_config()});
    change(all.back().config);
  };
  add("plain", [](models::DecoderConfig&) {});
  add("one_kv_head", [](models::DecoderConfig& c) { c.kv_heads = 1; });
  add("ungrouped", [](models::DecoderConfig& c) { c.kv_heads = c.heads; });
  add("tied", [](models::DecoderConfig& c) { c.tied_head = true; });
  add("biases", [](models::DecoderConfig& c) { c.qkv_bias = c.output_bias = c.mlp_bias = true; });
  add("qk_norm", [](models::DecoderConfig& c) { c.qk_norm = true; });
  add("headwise_gate", [](models::DecoderConfig& c) { c.gate = models::Gate::headwise; });
  add("elementwise_gate", [](models::DecoderConfig& c) { c.gate = models::Gate::elementwise; });
  add("windows", [](models::DecoderConfig& c) { c.window = {5, 0}; });
  add("gelu_tanh", [](models::DecoderConfig& c) { c.activation = models::Activation::gelu_tanh; });
  add("gelu_erf", [](models::DecoderConfig& c) { c.activation = models::Activation::gelu_erf; });
  add("rope_linear", [](models::DecoderConfig& c) { c.rope = {.scaling = RopeScaling::linear, .factor = 4}; });
  add("rope_llama3",
      [](models::DecoderConfig& c) { c.rope = {.base = 100, .scaling = RopeScaling::llama3, .factor = 4, .original_max_positions = 64}; });
  add("rope_yarn",
      [](models::DecoderConfig& c) { c.rope = {.base = 100, .scaling = RopeScaling::yarn, .factor = 4, .original_max_positions = 64}; });
  add("many", [](models::DecoderConfig& c) {
    c.qkv_bias = c.output_bias = c.mlp_bias = c.qk_norm = true;
    c.gate = models::Gate::elementwise;
    c.window = {0, 7};
  });
  return all;
}

/// Normal weights of variance 1 / inputs, norms around 1, biases of deviation 0.5: every term is large enough to be missed.
class RandomWeights {
 public:
  RandomWeights(std::uint64_t seed, at::ScalarType dtype) : dtype_(dtype) { at::manual_seed(seed); }

  models::DecoderWeights of(const models::DecoderConfig& config) const {
    models::DecoderWeights weights;
    weights.embedding = at::randn({config.vocabulary, config.width}, at::kDouble).to(dtype_);
    for (std::int64_t layer = 0; layer < config.layers; ++layer) weights.layers.push_back(layer_of(config));
    weights.final_norm = norm(config.width);
    weights.head = config.tied_head ? weights.embedding : projection(config.vocabulary, config.width);
    return weights;
  }

 private:
  models::LayerWeights layer_of(const models::DecoderConfig& config) const {
    const std::int64_t queries = config.heads * config.head_dim, keys = config.kv_heads * config.head_dim;
    const std::int64_t gates = config.gate == models::Gate::headwise ? config.heads : queries;
    const bool gated = config.gate != models::Gate::none;
    models::LayerWeights w;
    w.attention_norm = norm(config.width);
    w.mlp_norm = norm(config.width);
    w.query = projection(queries, config.width);
    w.key = projection(keys, config.width);
    w.value = projection(keys, config.width);
    w.output = projection(config.width, queries);
    w.mlp_gate = projection(config.mlp_width, config.width);
    w.mlp_up = projection(config.mlp_width, config.width);
    w.mlp_down = projection(config.width, config.mlp_width);
    if (gated) w.gate_score = projection(gates, config.width);
    if (config.qkv_bias) {
      w.query_bias = bias(queries);
      w.key_bias = bias(keys);
      w.value_bias = bias(keys);
      if (gated) w.gate_score_bias = bias(gates);
    }
    if (config.output_bias) w.output_bias = bias(config.width);
    if (config.qk_norm) {
      w.query_norm = norm(config.head_dim);
      w.key_norm = norm(config.head_dim);
    }
    if (config.mlp_bias) {
      w.mlp_gate_bias = bias(config.mlp_width);
      w.mlp_up_bias = bias(config.mlp_width);
      w.mlp_down_bias = bias(config.width);
    }
    return w;
  }

  at::Tensor projection(std::int64_t out, std::int64_t in) const {
    return (at::randn({out, in}, at::kDouble) / std::sqrt(static_cast<double>(in))).to(dtype_);
  }
  at::Tensor norm(std::int64_t size) const { return (1 + 0.2 * at::randn({size}, at::kDouble)).to(dtype_); }
  at::Tensor bias(std::int64_t size) const { return (0.5 * at::randn({size}, at::kDouble)).to(dtype_); }

  at::ScalarType dtype_;
};

/// The same configuration and seed give the same weights in every dtype, up to rounding.
inline models::Decoder random_decoder(const models::DecoderConfig& config, at::ScalarType dtype = at::kDouble, std::uint64_t seed = 1) {
  return models::Decoder(config, RandomWeights(seed, dtype).of(config));
}

/// [batch, position] ids that repeat with a period longer than any test's window.
inline hooks::Tokens some_tokens(const models::DecoderConfig& config, std::int64_t batch, std::int64_t positions) {
  return {(at::arange(batch * positions, at::kLong) * 17 + 5).remainder(config.vocabulary).view({batch, positions})};
}

/// Logits [batch, position, vocabulary].
inline at::Tensor logits(models::Decoder& model, const hooks::Tokens& tokens, const hooks::ForwardOptions& options = {},
                         const hooks::Hooks& hooks = {}) {
  return model.unembed(model.forward(tokens, options, hooks).hidden);
}

}  // namespace gainlens::testing
