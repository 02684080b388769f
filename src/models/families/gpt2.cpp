#include "core/error.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace gpt2_family {

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
          .norm_epsilon = "layer_norm_epsilon"};
}

constexpr CommonKeys keys = keys_of("n_layer", "n_embd", "n_head", "n_positions");

DecoderConfig parse(ConfigReader& reader) {
  // The reference reads the names of other families too.
  const CommonKeys spelled = keys_of(
      either(reader, "n_layer", "num_hidden_layers"), either(reader, "n_embd", "hidden_size"),
      either(reader, "n_head", "num_attention_heads"), either(reader, "n_positions", "max_position_embeddings"));
  DecoderConfig config = parse_common(reader,
                                      {.max_positions = 1024,
                                       .bos_token = 50256,
                                       .norm_epsilon = 1e-5,
                                       .activation = Activation::gelu_tanh,
                                       .tied_head = true,
                                       .mlp_ratio = 4,
                                       .positions = Positions::learned},
                                      spelled);
  config.norm = Norm::layer;
  config.norm_bias = config.qkv_bias = config.output_bias = config.mlp_bias = true;
  config.gated_mlp = false;
  if (!reader.boolean("scale_attn_weights", true)) config.attention_scale = 1;
  config.scale_by_layer = reader.boolean("scale_attn_by_inverse_layer_idx", false);
  return config;
}

TensorNames names() {
  TensorNames names;
  names.prefix = "transformer.";
  names.embedding = "wte";
  names.position_embedding = "wpe";
  names.final_norm = "ln_f";
  names.layer = "h.{}.";
  names.attention_norm = "ln_1";
  names.query_key_value = "attn.c_attn";
  names.output = "attn.c_proj";
  names.mlp_norm = "ln_2";
  names.mlp_up = "mlp.c_fc";
  names.mlp_down = "mlp.c_proj";
  names.transposed = true;
  return names;
}

}  // namespace gpt2_family

Family gpt2() {
  using namespace gpt2_family;
  // n_ctx repeats n_positions in old files. reorder_and_upcast_attn changes the precision of the attention of the
  // reference, not its definition.
  return {.name = "gpt2",
          .title = "GPT-2",
          .examples = "GPT-2 (all sizes), DistilGPT-2",
          .classes = {"GPT2"},
          .class_suffix = "LMHeadModel",
          .parse = parse,
          .keys = keys,
          .tensors = names(),
          .inert_keys = {"n_ctx", "reorder_and_upcast_attn", "summary_type", "summary_use_proj", "summary_activation",
                         "summary_proj_to_labels", "summary_first_dropout"},
          .inert_tensors = {".attn.bias", ".attn.masked_bias"},  // masks
          .gguf = {.architecture = "gpt2", .tensors = gguf_joined_names()}};
}

}  // namespace gainlens::models
