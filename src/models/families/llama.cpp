#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace gainlens::models {
namespace llama_family {

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

/// The metadata that say what the model is called, in lower case.
std::string name_in(const formats::GgufMetadata& metadata) {
  std::string name;
  for (const char* key : {"general.name", "general.basename", "general.version", "general.finetune"}) {
    const formats::GgufValue* value = metadata.find(key);
    if (value != nullptr && value->kind == formats::GgufKind::text) name += metadata.text(key) + " ";
  }
  std::ranges::transform(name, name.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return name;
}

/// Mistral 7B v0.1 and the models made from it have a window of 4,096 keys. Converters leave it out, and nothing else
/// in the file tells it from a Llama model. Later versions have no window, and another base of the rotary embedding.
void note_window_left_out(GgufConfig& gguf) {
  const auto has = [&](const char* key, const Json& value) { return gguf.config.value(key, Json(nullptr)) == value; };
  if (gguf.config.contains("rope_scaling") || (gguf.config.contains("rope_theta") && !has("rope_theta", 10000.0)))
    return;
  const std::string name = name_in(gguf.metadata());
  const bool by_name = name.find("mistral") != std::string::npos && name.find("v0.1") != std::string::npos;
  const bool by_sizes = has("max_position_embeddings", 32768) && has("hidden_size", 4096) &&
                        has("intermediate_size", 14336) && has("num_hidden_layers", 32) &&
                        has("num_attention_heads", 32) && has("num_key_value_heads", 8);
  if (!by_name && !by_sizes) return;
  gguf.notes.push_back(fmt::format(
      "the file states no window of attention, so every query sees all keys before it. But it has the {} of "
      "Mistral 7B v0.1, whose window is 4096 tokens: in longer contexts the numbers are not those of that "
      "model; use its safetensors files there",
      by_name ? "name" : "sizes"));
}

void complete(GgufConfig& gguf) {
  const bool biased = gguf.has_tensor("blk.0.attn_q.bias");
  gguf.config["attention_bias"] = biased;
  gguf.config["mlp_bias"] = gguf.has_tensor("blk.0.ffn_up.bias");
  note_window_left_out(gguf);
}

}  // namespace llama_family

Family llama() {
  using namespace llama_family;
  return {.name = "llama",
          .title = "Llama",
          .examples = "Llama 1 to 3.3, Vicuna, TinyLlama, SmolLM, Yi",
          .classes = {"Llama", "LLaMA"},
          .parse = parse,
          .tensors = {},
          .gguf = {.architecture = "llama", .tensors = gguf_paired_names(), .complete = complete}};
}

}  // namespace gainlens::models
