#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace starcoder2_family {

constexpr CommonKeys keys{.norm_epsilon = "norm_epsilon"};

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config = parse_common(reader,
                                      {.max_positions = 4096,
                                       .kv_heads = 2,
                                       .bos_token = 50256,
                                       .norm_epsilon = 1e-5,
                                       .activation = Activation::gelu_tanh,
                                       .tied_head = true},
                                      keys);
  config.norm = Norm::layer;
  config.norm_bias = true;
  config.qkv_bias = config.output_bias = config.mlp_bias = reader.boolean("use_bias", true);
  config.gated_mlp = false;
  // This family has no window if the key is absent. The fallback is not used.
  if (reader.find_non_null("sliding_window") != nullptr)
    config.window.assign(config.window.size(), parse_window(reader, 1));
  require_value(reader, "norm_type", "layer_norm", "other norms are not computed");
  require_value(reader, "mlp_type", "default", "other feed-forward layers are not computed");
  return config;
}

TensorNames names() {
  TensorNames names;
  names.mlp_up = "mlp.c_fc";
  names.mlp_down = "mlp.c_proj";
  return names;
}

void complete(GgufConfig& gguf) {
  const bool biased = gguf.has_tensor("blk.0.attn_q.bias");
  gguf.config["use_bias"] = biased;
  gguf.fill("sliding_window", 4096, "not in the file; the value of all models of the family");
}

}  // namespace starcoder2_family

Family starcoder2() {
  using namespace starcoder2_family;
  return {.name = "starcoder2",
          .title = "StarCoder 2",
          .examples = "StarCoder 2 3B to 15B",
          .classes = {"Starcoder2"},
          .parse = parse,
          .keys = keys,
          .tensors = names(),
          .gguf = {.architecture = "starcoder2",
                   .tensors = gguf_names(),
                   .keys = {{"attention.sliding_window", "sliding_window"}},
                   .complete = complete}};
}

}  // namespace gainlens::models
