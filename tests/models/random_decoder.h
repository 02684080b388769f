#pragma once

#include "models/decoder/decoder.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <ostream>
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

/// A filter whose numbers follow from the weights and the tokens alone, and whose every parameter has an effect.
inline bft::FilterOptions filter_for_tests() {
  bft::FilterOptions filter;
  filter.output_projection = true;
  filter.jacobian = bft::JacobianForm::exact;
  filter.running_jacobian = false;
  filter.process_noise_start = -1;
  filter.initial_decay = 0.9;
  return filter;
}

struct NamedConfig {
  std::string name;
  models::DecoderConfig config;
};
inline void PrintTo(const NamedConfig& named, std::ostream* out) {
  *out << named.name;
}

/// One configuration for each option of a decoder, and one with many options at once.
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
  add("qk_norm", [](models::DecoderConfig& c) { c.qk_norm = models::QkNorm::head; });
  add("headwise_gate", [](models::DecoderConfig& c) { c.gate = models::Gate::headwise; });
  add("elementwise_gate", [](models::DecoderConfig& c) { c.gate = models::Gate::elementwise; });
  add("windows", [](models::DecoderConfig& c) { c.window = {5, 0}; });
  add("gelu_tanh", [](models::DecoderConfig& c) { c.activation = models::Activation::gelu_tanh; });
  add("gelu_erf", [](models::DecoderConfig& c) { c.activation = models::Activation::gelu_erf; });
  add("rope_linear", [](models::DecoderConfig& c) { c.rope = {.scaling = RopeScaling::linear, .factor = 4}; });
  add("rope_llama3", [](models::DecoderConfig& c) {
    c.rope = {.base = 100, .scaling = RopeScaling::llama3, .factor = 4, .original_max_positions = 64};
  });
  add("rope_yarn", [](models::DecoderConfig& c) {
    c.rope = {.base = 100, .scaling = RopeScaling::yarn, .factor = 4, .original_max_positions = 64};
  });
  add("rope_longrope", [](models::DecoderConfig& c) {
    c.rope = {.scaling = RopeScaling::longrope,
              .original_max_positions = 20,
              .attention_factor = 1.2,
              .short_factors = {1, 2},
              .long_factors = {3, 5}};
  });
  add("partial_rotary", [](models::DecoderConfig& c) { c.rope.rotated = 0.5; });
  add("window_rope", [](models::DecoderConfig& c) {
    c.window = {5, 0};
    c.window_rope = models::RopeConfig{.base = 3};
  });
  add("learned_positions", [](models::DecoderConfig& c) { c.positions = models::Positions::learned; });
  add("alibi", [](models::DecoderConfig& c) { c.positions = models::Positions::alibi; });
  add("embedding_scale", [](models::DecoderConfig& c) { c.embedding_scale = 1.5; });
  add("layer_norm", [](models::DecoderConfig& c) {
    c.norm = models::Norm::layer;
    c.norm_bias = c.embedding_norm = true;
  });
  add("norm_offset", [](models::DecoderConfig& c) { c.norm_offset = 1; });
  add("sandwich_norm", [](models::DecoderConfig& c) { c.post_norm = true; });
  add("post_norm", [](models::DecoderConfig& c) {
    c.pre_norm = false;
    c.post_norm = true;
  });
  add("parallel_residual", [](models::DecoderConfig& c) { c.parallel_residual = true; });
  add("shared_norm", [](models::DecoderConfig& c) { c.parallel_residual = c.shared_norm = true; });
  add("qkv_clip", [](models::DecoderConfig& c) { c.qkv_clip = 0.7; });
  add("qk_norm_of_heads", [](models::DecoderConfig& c) { c.qk_norm = models::QkNorm::heads; });
  add("qk_norm_whole", [](models::DecoderConfig& c) { c.qk_norm = models::QkNorm::whole; });
  add("scale_by_layer", [](models::DecoderConfig& c) {
    c.attention_scale = 0.9;
    c.scale_by_layer = true;
  });
  add("soft_caps", [](models::DecoderConfig& c) {
    c.attention_soft_cap = 0.8;
    c.logit_soft_cap = 1.5;
  });
  add("sink_logits", [](models::DecoderConfig& c) { c.sink_logits = true; });
  add("kv_heads_of_layers", [](models::DecoderConfig& c) {
    c.kv_heads = 4;
    c.layer_kv_heads = {2, 4};
    c.window = {0, 5};
    c.qk_norm = models::QkNorm::whole;
  });
  add("narrow_values", [](models::DecoderConfig& c) {
    c.value_head_dim = 3;
    c.value_scale = 0.7;
    c.qkv_bias = true;
  });
  add("wide_values_sinks_in_one_layer", [](models::DecoderConfig& c) {
    c.value_head_dim = 6;
    c.kv_heads = 2;
    c.layer_kv_heads = {2, 1};
    c.sink_logits = true;
    c.sink_layers = {false, true};
    c.gate = models::Gate::elementwise;
  });
  add("plain_mlp", [](models::DecoderConfig& c) {
    c.gated_mlp = false;
    c.activation = models::Activation::gelu_tanh;
  });
  add("experts", [](models::DecoderConfig& c) { c.experts = {.count = 4, .per_token = 2, .width = 12}; });
  add("shared_expert", [](models::DecoderConfig& c) {
    c.experts = {.count = 4, .per_token = 2, .width = 12, .shared_width = 20, .shared_score = true};
  });
  add("shared_expert_without_score", [](models::DecoderConfig& c) {
    c.experts = {.count = 3, .per_token = 1, .width = 12, .bias = true, .shared_width = 8};
  });
  add("gated_delta_rule", [](models::DecoderConfig& c) {
    c.delta = {.layers = {true, false}, .key_heads = 2, .value_heads = 4, .key_dim = 6, .value_dim = 5, .kernel = 3};
    c.gate = models::Gate::elementwise;
    c.norm_offset = 1;
  });
  add("short_convolutions", [](models::DecoderConfig& c) {
    c.convolution = {.layers = {true, false}, .kernel = 4, .bias = true};
    c.gate = models::Gate::headwise;
    c.post_norm = true;
  });
  add("short_convolutions_without_bias", [](models::DecoderConfig& c) {
    c.convolution = {.layers = {true, false}, .kernel = 1};
  });
  add("latent_attention", [](models::DecoderConfig& c) {
    c.kv_heads = c.heads;
    c.head_dim = 6;
    c.latent = {.key_rank = 5, .query_rank = 7, .rotated = 4};
    c.value_head_dim = 3;
    c.qkv_bias = c.output_bias = true;
  });
  add("latent_attention_with_wide_values", [](models::DecoderConfig& c) {
    c.kv_heads = c.heads;
    c.latent = {.key_rank = 5, .rotated = 2};
    c.value_head_dim = 7;
  });
  add("experts_in_groups", [](models::DecoderConfig& c) {
    c.experts = {.count = 6,
                 .per_token = 2,
                 .width = 12,
                 .scores = models::RouterScores::sigmoid,
                 .router_correction = true,
                 .router_wide = true,
                 .groups = 3,
                 .kept_groups = 2,
                 .group_leaders = 2,
                 .scale = 1.5,
                 .shared_width = 8};
  });
  add("experts_in_one_layer", [](models::DecoderConfig& c) {
    c.experts = {.count = 3,
                 .per_token = 2,
                 .width = 12,
                 .normalised = false,
                 .router_bias = true,
                 .bias = true,
                 .layers = {true, false}};
    c.clipped_gate = models::ClippedGate{.limit = 0.8};
  });
  add("position_offset", [](models::DecoderConfig& c) {
    c.positions = models::Positions::learned;
    c.position_offset = 2;
  });
  add("unrotated_layer", [](models::DecoderConfig& c) { c.unrotated = {false, true}; });
  add("rotated_before_norm", [](models::DecoderConfig& c) {
    c.qk_norm = models::QkNorm::head;
    c.rotated_before_norm = true;
  });
  add("rope_stretched_base",
      [](models::DecoderConfig& c) { c.rope = {.base = 100, .scaling = RopeScaling::stretched_base, .factor = 50}; });
  add("rope_proportional", [](models::DecoderConfig& c) {
    c.rope = {.base = 100, .rotated = 0.5, .scaling = RopeScaling::proportional, .factor = 2};
  });
  add("residual_scale", [](models::DecoderConfig& c) { c.residual_scale = 0.3; });
  add("logit_scale", [](models::DecoderConfig& c) {
    c.logit_scale = 0.25;
    c.logit_soft_cap = 1.5;
  });
  add("filter", [](models::DecoderConfig& c) { c.filter = filter_for_tests(); });
  add("filter_of_table", [](models::DecoderConfig& c) {
    c.filter = filter_for_tests();
    c.filter->initial_precision = bft::InitialPrecision::table;
    c.filter->predict = bft::Predict::decay;
    c.filter->estimator = bft::Estimator::reml_conjugate;
    c.gated_mlp = false;
    c.activation = models::Activation::gelu_tanh;
  });
  add("filter_in_the_stream", [](models::DecoderConfig& c) {
    c.filter = filter_for_tests();
    c.filter->gain_place = bft::GainPlace::after;
    c.filter->jacobian = bft::JacobianForm::low_rank;
    c.heads = 6;
    c.post_norm = true;
    c.residual_scale = 0.5;
    c.window = {5, 0};
  });
  add("filter_of_wide_heads", [](models::DecoderConfig& c) {
    c.filter = filter_for_tests();
    c.heads = 6;
  });
  add("filter_that_begins_anew", [](models::DecoderConfig& c) {
    c.filter = filter_for_tests();
    c.filter->predict = bft::Predict::prior;
  });
  add("filter_of_running_means", [](models::DecoderConfig& c) {
    c.filter = filter_for_tests();
    c.filter->running_jacobian = true;
    c.qkv_bias = c.output_bias = c.mlp_bias = true;
  });
  add("many", [](models::DecoderConfig& c) {
    c.qkv_bias = c.output_bias = c.mlp_bias = true;
    c.qk_norm = models::QkNorm::head;
    c.gate = models::Gate::elementwise;
    c.window = {0, 7};
  });
  return all;
}

/// Normal weights of variance 1 / inputs, norms around 1, biases of deviation 0.5. Every term is so large that a test
/// fails without it.
class RandomWeights {
 public:
  RandomWeights(std::uint64_t seed, at::ScalarType dtype) : dtype_(dtype) { at::manual_seed(seed); }

  models::DecoderWeights of(const models::DecoderConfig& config) const {
    models::DecoderWeights weights;
    fill(models::outer_fields(config), models::tensors_by_field(weights), config);
    weights.layers.resize(static_cast<std::size_t>(config.layers));
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      models::LayerWeights& of_layer = weights.layers[static_cast<std::size_t>(layer)];
      fill(models::layer_fields(config, layer), models::tensors_by_field(of_layer), config);
    }
    if (config.tied_head) weights.head = weights.embedding;
    return weights;
  }

 private:
  void fill(const std::vector<models::WeightField>& fields, const models::TensorsByField& tensors,
            const models::DecoderConfig& config) const {
    for (const models::WeightField& field : fields) {
      const bool wide = field.kind == models::WeightField::Kind::correction && dtype_ != at::kDouble;
      if (field.wanted) *tensors.at(field.name) = random(field, config).to(wide ? at::kFloat : dtype_);
    }
  }
  at::Tensor random(const models::WeightField& field, const models::DecoderConfig& config) const {
    const at::Tensor normal = at::randn(field.shape, at::kDouble);
    switch (field.kind) {
      case models::WeightField::Kind::embedding:
      case models::WeightField::Kind::logit:
        return normal;
      case models::WeightField::Kind::norm:
        return 1 - config.norm_offset + 0.2 * normal;
      case models::WeightField::Kind::bias:
      case models::WeightField::Kind::correction:
        return 0.5 * normal;
      case models::WeightField::Kind::convolution:
        return normal;
      case models::WeightField::Kind::projection:
        // Large router weights avoid near ties, in which another precision would choose other experts.
        if (field.name == "router") return 4 * normal / std::sqrt(static_cast<double>(field.shape.back()));
        return normal / std::sqrt(static_cast<double>(field.shape.back()));
      case models::WeightField::Kind::filter:
      case models::WeightField::Kind::precision:
        if (!field.start) return normal / std::sqrt(static_cast<double>(field.shape.back()));
        return field.name == "precision.range" ? normal.abs() + 0.5 : *field.start + 0.5 * normal;
      case models::WeightField::Kind::constant:
        return field.name == "stretch" ? 0.5 + normal.square() : at::ones(field.shape, at::kDouble);
    }
    return {};
  }

  at::ScalarType dtype_;
};

/// The same configuration and seed give the same weights in every dtype, up to rounding.
inline models::Decoder random_decoder(const models::DecoderConfig& config, at::ScalarType dtype = at::kDouble,
                                      std::uint64_t seed = 1) {
  return models::Decoder(config, RandomWeights(seed, dtype).of(config));
}

/// Ids [batch, position] that repeat with a period longer than the window of any test.
inline hooks::Tokens some_tokens(const models::DecoderConfig& config, std::int64_t batch, std::int64_t positions) {
  return {(at::arange(batch * positions, at::kLong) * 17 + 5).remainder(config.vocabulary).view({batch, positions})};
}

/// Logits [batch, position, vocabulary].
inline at::Tensor logits(models::Decoder& model, const hooks::Tokens& tokens, const hooks::ForwardOptions& options = {},
                         const hooks::Hooks& hooks = {}) {
  return model.unembed(model.forward(tokens, options, hooks).hidden);
}

}  // namespace gainlens::testing
