#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"

#include <cmath>

namespace gainlens::models {
namespace gptj_family {

constexpr CommonKeys keys_of(std::string_view layers, std::string_view width, std::string_view heads,
                             std::string_view positions) {
  return {.layers = layers,
          .width = width,
          .mlp_width = "n_inner",
          .heads = heads,
          .kv_heads = "",
          .head_dim = "",
          .positions = positions,
          .activation = "activation_function",
          .norm_epsilon = "layer_norm_epsilon",
          .rope = {.base = "", .rotated = "partial_rotary_factor"}};  // the base is always 10000
}

constexpr CommonKeys keys = keys_of("n_layer", "n_embd", "n_head", "n_positions");

/// The share of a head that a number of rotated dimensions is, so that the product with head_dim gives the number back.
double rotated_share(ConfigReader& reader, std::int64_t head_dim) {
  const std::int64_t rotated = reader.integer("rotary_dim", 2, head_dim, 64);
  CHECK(rotated % 2 == 0, "{}: 'rotary_dim' is {}; must be even", reader.where(), rotated);
  CHECK(rotated <= head_dim, "{}: 'rotary_dim' is missing, which means {}; a head has {} dimensions: give 'rotary_dim'",
        reader.where(), rotated, head_dim);
  const double share = static_cast<double>(rotated) / static_cast<double>(head_dim);
  return rotated == head_dim ? 1 : std::nextafter(share, 2.0);
}

DecoderConfig parse(ConfigReader& reader) {
  const CommonKeys spelled = keys_of(
      either(reader, "n_layer", "num_hidden_layers"), either(reader, "n_embd", "hidden_size"),
      either(reader, "n_head", "num_attention_heads"), either(reader, "n_positions", "max_position_embeddings"));
  DecoderConfig config = parse_common(reader,
                                      {.max_positions = 2048,
                                       .bos_token = 50256,
                                       .norm_epsilon = 1e-5,
                                       .activation = Activation::gelu_tanh,
                                       .mlp_ratio = 4},
                                      spelled);
  config.rope.rotated = rotated_share(reader, config.head_dim);
  config.norm = Norm::layer;
  config.norm_bias = config.mlp_bias = config.head_bias = true;
  config.gated_mlp = false;
  config.parallel_residual = config.shared_norm = true;
  require_value(reader, "rotary", true, "queries and keys are rotated");
  require_value(reader, "scale_attn_weights", true, "scores are divided by the square root of head_dim");
  return config;
}

TensorNames names() {
  TensorNames names;
  names.prefix = "transformer.";
  names.embedding = "wte";
  names.final_norm = "ln_f";
  names.layer = "h.{}.";
  names.attention_norm = "ln_1";
  names.query = "attn.q_proj";
  names.key = "attn.k_proj";
  names.value = "attn.v_proj";
  names.output = "attn.out_proj";
  names.rotary_pairs = true;
  names.mlp_up = "mlp.fc_in";
  names.mlp_down = "mlp.fc_out";
  return names;
}

}  // namespace gptj_family

Family gptj() {
  using namespace gptj_family;
  return {.name = "gptj",
          .title = "GPT-J",
          .examples = "GPT-J 6B",
          .classes = {"GPTJ"},
          .parse = parse,
          .keys = keys,
          .tensors = names(),
          .inert_tensors = {".attn.bias", ".attn.masked_bias"}};  // masks
}

}  // namespace gainlens::models
