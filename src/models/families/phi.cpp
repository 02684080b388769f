#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace phi_family {

constexpr CommonKeys keys{.norm_epsilon = "layer_norm_eps",
                          .rope = {.rotated = "partial_rotary_factor", .default_rotated = 0.5}};

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config = parse_common(
      reader, {.max_positions = 2048, .bos_token = 1, .norm_epsilon = 1e-5, .activation = Activation::gelu_tanh}, keys);
  config.norm = Norm::layer;
  config.norm_bias = config.qkv_bias = config.output_bias = config.mlp_bias = config.head_bias = true;
  config.gated_mlp = false;
  config.parallel_residual = config.shared_norm = true;
  require_value(reader, "qk_layernorm", false, "queries and keys of this family are not normalised");
  return config;
}

TensorNames names() {
  TensorNames names;
  names.final_norm = "final_layernorm";
  names.output = "self_attn.dense";
  names.mlp_up = "mlp.fc1";
  names.mlp_down = "mlp.fc2";
  return names;
}

void complete(GgufConfig& gguf) {
  gguf.fill("rope_theta", 1e4, "not in the file; the value of this family");
}

}  // namespace phi_family

Family phi() {
  using namespace phi_family;
  return {.name = "phi",
          .title = "Phi",
          .examples = "Phi-1, Phi-1.5, Phi-2",
          .classes = {"Phi"},
          .parse = parse,
          .keys = keys,
          .tensors = names(),
          .inert_keys = {"attention_bias"},  // false in old files, whose tensors have biases
          .gguf = {.architecture = "phi2", .tensors = gguf_names(), .complete = complete}};
}

}  // namespace gainlens::models
