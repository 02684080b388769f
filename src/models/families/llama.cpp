#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace {

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config = parse_common(reader, {.max_positions = 2048, .bos_token = 1});
  config.qkv_bias = config.output_bias = reader.boolean("attention_bias", false);
  config.mlp_bias = reader.boolean("mlp_bias", false);
  return config;
}

void complete(GgufConfig& gguf) {
  const bool biased = gguf.has_tensor("blk.0.attn_q.bias");
  gguf.config["attention_bias"] = biased;
  gguf.config["mlp_bias"] = gguf.has_tensor("blk.0.ffn_up.bias");
}

}  // namespace

Family llama() {
  return {.name = "llama",
          .title = "Llama",
          .examples = "Llama 1 to 3.3, TinyLlama, SmolLM, Yi",
          .parse = parse,
          .tensors = {},
          .gguf = {.architecture = "llama", .tensors = gguf_paired_names(), .complete = complete}};
}

}  // namespace gainlens::models
