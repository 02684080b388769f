#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace qwen3_family {

/// The keys of checkpoints with gated attention (docs/method.md, "Gates"). headwise wins if both are set.
Gate parse_gate(ConfigReader& reader) {
  const bool headwise = reader.boolean("headwise_attn_output_gate", false);
  const bool elementwise = reader.boolean("elementwise_attn_output_gate", false);
  return headwise ? Gate::headwise : elementwise ? Gate::elementwise : Gate::none;
}

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config = parse_common(reader, {.max_positions = 32768, .kv_heads = 32, .head_dim = 128});
  config.gate = parse_gate(reader);
  config.qk_norm = reader.boolean("use_qk_norm", true) ? QkNorm::head : QkNorm::none;
  // Gated checkpoints have qkv_bias, and an attention_bias that their code does not read. Both keys also decide about a
  // bias of the output projection.
  const bool attention_bias = reader.boolean("attention_bias", false);
  const bool bias = reader.boolean("qkv_bias", attention_bias);
  CHECK(bias || !attention_bias, "{}: 'attention_bias' is true and 'qkv_bias' is false; they must agree",
        reader.where());
  config.qkv_bias = config.output_bias = bias;
  config.window = parse_layer_windows(reader, config.layers);
  return config;
}

}  // namespace qwen3_family

Family qwen3() {
  using namespace qwen3_family;
  return {.name = "qwen3",
          .title = "Qwen 3",
          .examples = "Qwen 3 (dense); with the output gates of gated_attention",
          .classes = {"Qwen3"},
          .parse = parse,
          .tensors = {},
          .gguf = {.architecture = "qwen3", .tensors = gguf_names()}};
}

}  // namespace gainlens::models
