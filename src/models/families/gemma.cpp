#include "core/check.h"
#include "core/error.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"
#include "models/families/text_config.h"

#include <cmath>

namespace gainlens::models {
namespace gemma_family {

constexpr CommonKeys gemma2_keys{.activation = "hidden_activation"};
constexpr CommonKeys gemma3_keys{
    .activation = "hidden_activation",
    .rope = {
        .by_window = true, .window_base = "rope_local_base_freq", .default_base = 1e6, .default_window_base = 1e4}};
// Old files have hidden_act; the reference reads hidden_activation.
const std::vector<std::string_view> gemma_inert = {"hidden_act", "cache_implementation"};

/// What Gemma 2 and 3 share. There are norms before and after attention and MLP, and their stored weights are smaller
/// by 1. The embedding is scaled by the square root of the width. A number in the file gives the scale of the scores.
DecoderConfig parse_gemma(ConfigReader& reader, CommonDefaults defaults, const CommonKeys& keys) {
  defaults.kv_heads = 4;
  defaults.head_dim = 256;
  defaults.bos_token = 2;
  defaults.activation = Activation::gelu_tanh;
  defaults.tied_head = true;
  DecoderConfig config = parse_common(reader, defaults, keys);
  config.embedding_scale = std::sqrt(static_cast<double>(config.width));
  config.norm_offset = parse_norm_offset(reader);
  config.post_norm = true;
  config.attention_scale = 1 / std::sqrt(reader.number("query_pre_attn_scalar", 1e-6, 1e9, 256));
  config.qkv_bias = config.output_bias = reader.boolean("attention_bias", false);
  require_value(reader, "use_bidirectional_attention", false, "a query sees no later key");
  return config;
}

/// Gemma 1 has neither norms after attention and MLP nor a number for the scale. Its activation is written in several
/// ways, which all mean the tanh form.
DecoderConfig parse_gemma1(ConfigReader& reader) {
  DecoderConfig config = parse_common(reader,
                                      {.max_positions = 8192,
                                       .kv_heads = 16,
                                       .head_dim = 256,
                                       .bos_token = 2,
                                       .activation = Activation::gelu_tanh,
                                       .tied_head = true},
                                      {.activation = ""});
  for (const char* key : {"hidden_act", "hidden_activation"}) {
    if (reader.find_non_null(key) == nullptr) continue;
    const std::string name = reader.text(key);
    CHECK(name == "gelu" || activation_named(name) == Activation::gelu_tanh,
          "{}: '{}' is '{}'; this family computes gelu in its tanh form only", reader.where(), key,
          printable(name, 60));
  }
  config.embedding_scale = std::sqrt(static_cast<double>(config.width));
  config.norm_offset = parse_norm_offset(reader);
  config.qkv_bias = config.output_bias = reader.boolean("attention_bias", false);
  require_value(reader, "use_bidirectional_attention", false, "a query sees no later key");
  return config;
}

DecoderConfig parse_gemma2(ConfigReader& reader) {
  DecoderConfig config = parse_gemma(reader, {.max_positions = 8192}, gemma2_keys);
  config.window = parse_alternating_windows(reader, config.layers, 2, 4096);
  config.attention_soft_cap = parse_optional_positive(reader, "attn_logit_softcapping", 50);
  config.logit_soft_cap = parse_optional_positive(reader, "final_logit_softcapping", 30);
  return config;
}

/// A soft cap that the reference does not apply. No published file has one.
void note_unused_cap(ConfigReader& reader, std::string_view key, std::string_view why) {
  const double cap = parse_optional_positive(reader, key, std::nullopt);
  if (cap == 0) return;
  reader.note(fmt::format("{} is {}; as in the Python reference it is not applied: {}", reader.quoted(key), cap, why));
}

DecoderConfig parse_gemma3(ConfigReader& reader) {
  // Heads and vocabulary have defaults, since the files of the multimodal models leave them out.
  DecoderConfig config = parse_gemma(reader, {.max_positions = 131072, .heads = 8, .vocabulary = 262208}, gemma3_keys);
  config.qk_norm = QkNorm::head;
  config.window = parse_alternating_windows(reader, config.layers, parse_window_pattern(reader, 6), 4096);
  note_unused_cap(reader, "attn_logit_softcapping", "its attention stores this number and caps no score");
  config.logit_soft_cap = parse_optional_positive(reader, "final_logit_softcapping", std::nullopt);
  return config;
}

/// The text model inside a multimodal checkpoint.
DecoderConfig parse_gemma3_multimodal(ConfigReader& reader) {
  DecoderConfig config = parse_text_config(reader, "gemma3");
  if (config.logit_soft_cap > 0) {
    reader.note(fmt::format(
        "'text_config.final_logit_softcapping' is {}; as in the Python reference it is not applied: its class for text "
        "and images caps no logit",
        config.logit_soft_cap));
    config.logit_soft_cap = 0;
  }
  return config;
}

/// Completes Gemma 2 and 3. Norms in the file hold 1 + w. The scores are scaled by the size of a head; in the largest
/// model by width / heads.
void complete_gemma(GgufConfig& gguf, std::int64_t layers_of_largest) {
  gguf.config[norm_offset_key] = 0.0;
  const auto& metadata = gguf.metadata();
  const std::int64_t layers = metadata.integer(gguf.full("block_count"), 1, 4096);
  const bool by_width = layers == layers_of_largest;
  const std::int64_t heads = metadata.integer(gguf.full("attention.head_count"), 1, 1 << 14);
  const std::int64_t scale = by_width ? metadata.integer(gguf.full("embedding_length"), 1, 1 << 20) / heads
                                      : metadata.integer(gguf.full("attention.key_length"), 1, 1 << 14, 256);
  gguf.fill(
      "query_pre_attn_scalar", scale,
      by_width ? "not in the file; width / heads in this family's 27B model" : "not in the file; the size of a head");
}

void complete_gemma1(GgufConfig& gguf) {
  gguf.config[norm_offset_key] = 0.0;
  gguf.fill("rope_theta", 1e4, "not in the file; the value of this family");
}

void complete_gemma2(GgufConfig& gguf) {
  complete_gemma(gguf, 46);
  gguf.fill("sliding_window", 4096, "not in the file; the value of this family");
}

void complete_gemma3(GgufConfig& gguf) {
  complete_gemma(gguf, 62);
  if (!copy_window_pattern(gguf)) {
    gguf.fill("sliding_window_pattern", 6,
              "not in the file; in all models of the family a global layer follows five with a window");
  }
  gguf.fill("rope_theta", 1e6, "not in the file; the value of global layers in all models of the family");
  gguf.fill("rope_local_base_freq", 1e4,
            "not in the file; the value of layers with a window in all models of the family");
}

TensorNames gemma_names() {
  TensorNames names;
  names.attention_post_norm = "post_attention_layernorm";
  names.mlp_norm = "pre_feedforward_layernorm";
  names.mlp_post_norm = "post_feedforward_layernorm";
  return names;
}

}  // namespace gemma_family

Family gemma1() {
  using namespace gemma_family;
  return {.name = "gemma",
          .title = "Gemma",
          .examples = "Gemma 2B and 7B, CodeGemma",
          .classes = {"Gemma"},
          .parse = parse_gemma1,
          .keys = {.activation = ""},
          .tensors = {},
          .inert_keys = {"cache_implementation"},
          .gguf = {.architecture = "gemma", .tensors = gguf_names(), .complete = complete_gemma1}};
}

Family gemma2() {
  using namespace gemma_family;
  return {.name = "gemma2",
          .title = "Gemma 2",
          .examples = "Gemma 2 2B, Gemma 2 9B, Gemma 2 27B",
          .classes = {"Gemma2"},
          .parse = parse_gemma2,
          .keys = gemma2_keys,
          .tensors = gemma_names(),
          .inert_keys = gemma_inert,
          .gguf = {.architecture = "gemma2",
                   .tensors = gguf_names(),
                   .keys = {{"attention.sliding_window", "sliding_window"},
                            {"attn_logit_softcapping", "attn_logit_softcapping"},
                            {"final_logit_softcapping", "final_logit_softcapping"}},
                   .complete = complete_gemma2}};
}

Family gemma3() {
  using namespace gemma_family;
  return {.name = "gemma3_text",
          .title = "Gemma 3",
          .examples = "Gemma 3 270M and 1B; as GGUF all sizes",
          .classes = {"Gemma3", "Gemma3Text"},
          .parse = parse_gemma3,
          .keys = gemma3_keys,
          .tensors = gemma_names(),
          .inert_keys = gemma_inert,
          .gguf = {.architecture = "gemma3",
                   .tensors = gguf_names(),
                   .keys = {{"attention.sliding_window", "sliding_window"},
                            {"rope.freq_base_swa", "rope_local_base_freq"},
                            {"final_logit_softcapping", "final_logit_softcapping"}},
                   .complete = complete_gemma3}};
}

Family gemma3_multimodal() {
  using namespace gemma_family;
  TensorNames names = gemma_names();
  names.prefix = "language_model.model.";
  names.head = "language_model.lm_head";
  return {.name = "gemma3",
          .title = "Gemma 3, multimodal",
          .examples = "Gemma 3 4B, Gemma 3 12B, Gemma 3 27B; their language models",
          .classes = {"Gemma3"},
          .class_suffix = "ForConditionalGeneration",
          .parse = parse_gemma3_multimodal,
          .keys = gemma3_keys,
          .tensors = names,
          .inert_keys = {"vision_config", "mm_tokens_per_image", "boi_token_index", "eoi_token_index",
                         "image_token_index", "image_token_id"},
          .inert_tensors = {"vision_tower.", "multi_modal_projector."},
          .layouts = {{"model.language_model.", "lm_head"}}};
}

}  // namespace gainlens::models
