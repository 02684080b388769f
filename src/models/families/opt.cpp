#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace opt_family {

constexpr CommonKeys keys{.mlp_width = "ffn_dim",
                          .kv_heads = "",
                          .head_dim = "",
                          .activation = "activation_function",
                          .norm_epsilon = ""};  // the family has no key for it

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config = parse_common(reader,
                                      {.max_positions = 2048,
                                       .bos_token = 2,
                                       .norm_epsilon = 1e-5,
                                       .activation = Activation::relu,
                                       .tied_head = true,
                                       .positions = Positions::learned},
                                      keys);
  config.position_offset = 2;  // the first rows of the table were meant for padding
  config.norm = Norm::layer;
  config.norm_bias = true;
  config.qkv_bias = config.output_bias = config.mlp_bias = reader.boolean("enable_bias", true);
  config.gated_mlp = false;
  require_value(reader, "do_layer_norm_before", true, "norms after the sums (OPT 350M) are not computed");
  require_value(reader, "word_embed_proj_dim", config.width, "embeddings of another width (OPT 350M) are not computed");
  require_value(reader, "_remove_final_layer_norm", false, "the stream is normalised before the output head");
  require_value(reader, "layer_norm_elementwise_affine", true, "norms have weights");
  return config;
}

TensorNames names() {
  TensorNames names;
  names.prefix = "model.decoder.";
  names.position_embedding = "embed_positions";
  names.final_norm = "final_layer_norm";
  names.attention_norm = "self_attn_layer_norm";
  names.output = "self_attn.out_proj";
  names.mlp_norm = "final_layer_norm";  // of the layer
  names.mlp_up = "fc1";
  names.mlp_down = "fc2";
  return names;
}

}  // namespace opt_family

Family opt() {
  using namespace opt_family;
  return {.name = "opt",
          .title = "OPT",
          .examples = "OPT 125M to 66B without 350M, Galactica",
          .classes = {"OPT"},
          .parse = parse,
          .keys = keys,
          .tensors = names(),
          .layouts = {{"decoder.", "lm_head"}}};
}

}  // namespace gainlens::models
