#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace {

/// The first conversions of LLaMA 1 call the number of positions max_sequence_length. In later files this key is the
/// longest text after a scaling, and computes nothing.
std::string_view positions_key(const ConfigReader& reader) {
  const bool old = !reader.json().contains("max_position_embeddings") && reader.json().contains("max_sequence_length");
  return old ? "max_sequence_length" : "max_position_embeddings";
}

DecoderConfig parse(ConfigReader& reader) {
  const CommonKeys keys{.positions = positions_key(reader)};
  DecoderConfig config = parse_common(reader, {.max_positions = 2048, .bos_token = 1}, keys);
  const bool by_positions = config.rope.scaling != RopeScaling::none && config.rope.scaling != RopeScaling::linear;
  CHECK(!by_positions || keys.positions != "max_sequence_length",
        "{}: 'max_position_embeddings' is missing, and the scaling of the rotary embedding depends on it; add it",
        reader.where());
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
          .examples = "Llama 1 to 3.3, Vicuna, TinyLlama, SmolLM, Yi",
          .classes = {"Llama", "LLaMA"},
          .parse = parse,
          .tensors = {},
          .gguf = {.architecture = "llama", .tensors = gguf_paired_names(), .complete = complete}};
}

}  // namespace gainlens::models
