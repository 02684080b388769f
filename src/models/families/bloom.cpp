#include "core/error.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace bloom_family {

CommonKeys keys_of(std::string_view width, std::string_view heads, std::string_view layers) {
  return {.layers = layers,
          .width = width,
          .mlp_width = "n_inner",
          .heads = heads,
          .kv_heads = "",
          .head_dim = "",
          .positions = "seq_length",
          .activation = "",
          .norm_epsilon = "layer_norm_epsilon"};
}

DecoderConfig parse(ConfigReader& reader) {
  const CommonKeys keys =
      keys_of(either(reader, "hidden_size", "n_embed"), either(reader, "n_head", "num_attention_heads"),
              either(reader, "n_layer", "num_hidden_layers"));
  DecoderConfig config = parse_common(reader,
                                      {.max_positions = 2048,
                                       .bos_token = 1,
                                       .norm_epsilon = 1e-5,
                                       .activation = Activation::gelu_tanh,
                                       .tied_head = true,
                                       .mlp_ratio = 4,
                                       .positions = Positions::alibi},
                                      keys);
  config.norm = Norm::layer;
  config.norm_bias = config.embedding_norm = config.qkv_bias = config.output_bias = config.mlp_bias = true;
  config.gated_mlp = false;
  require_value(reader, "apply_residual_connection_post_layernorm", false,
                "the residual connection adds the stream before its norm");
  require_value(reader, "slow_but_exact", false, "matrix products are not split as in training");
  return config;
}

TensorNames names() {
  TensorNames names;
  names.prefix = "transformer.";
  names.embedding = "word_embeddings";
  names.embedding_norm = "word_embeddings_layernorm";
  names.final_norm = "ln_f";
  names.layer = "h.{}.";
  names.query_key_value = "self_attention.query_key_value";
  names.query_key_value_order = RowOrder::grouped;
  names.output = "self_attention.dense";
  names.mlp_up = "mlp.dense_h_to_4h";
  names.mlp_down = "mlp.dense_4h_to_h";
  return names;
}

}  // namespace bloom_family

Family bloom() {
  using namespace bloom_family;
  return {.name = "bloom",
          .title = "BLOOM",
          .examples = "BLOOM, BLOOMZ",
          .classes = {"Bloom"},
          .parse = parse,
          .keys = keys_of("hidden_size", "n_head", "n_layer"),
          .tensors = names(),
          // options of the kernels of the training code
          .inert_keys = {"attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion", "offset_alibi",
                         "skip_bias_add", "skip_bias_add_qkv", "unk_token_id"},
          .gguf = {.architecture = "bloom", .tensors = gguf_joined_names()}};
}

}  // namespace gainlens::models
