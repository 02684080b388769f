#include "core/check.h"
#include "core/error.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace olmo2_family {

// Layers with a window have the base of the others, without their scaling.
constexpr CommonKeys olmo3_keys{
    .rope = {.by_window = true, .window_base = "rope_theta", .default_base = 5e5, .default_window_base = 5e5}};

/// What OLMo 2 and 3 share.
DecoderConfig parse_olmo(ConfigReader& reader, const CommonKeys& keys) {
  DecoderConfig config = parse_common(reader, {.max_positions = 2048, .norm_epsilon = 1e-5}, keys);
  config.qkv_bias = config.output_bias = reader.boolean("attention_bias", false);
  config.pre_norm = false;
  config.post_norm = true;
  config.qk_norm = QkNorm::whole;
  return config;
}

DecoderConfig parse_olmo2(ConfigReader& reader) {
  return parse_olmo(reader, {});
}

DecoderConfig parse_olmo3(ConfigReader& reader) {
  const Json* base = reader.find_non_null("rope_theta");
  const bool by_kind = reader.find_non_null("rope_parameters") != nullptr;
  CHECK(base != nullptr || by_kind,
        "{}: no 'rope_theta'; version 4.57 of the reference takes 10000, version 5 takes 500000: give it",
        reader.where());
  CHECK(by_kind || *base == 5e5,
        "{}: 'rope_theta' is {}; versions of the reference give layers with a window this base or 500000, so give "
        "'rope_parameters' with a base for each kind of layer",
        reader.where(), brief(*base));
  DecoderConfig config = parse_olmo(reader, olmo3_keys);
  // The pattern is a key of GGUF files; other files list the layers, or have this default.
  const std::int64_t pattern = reader.integer("sliding_window_pattern", 4, 4, 4);
  config.window = parse_alternating_windows(reader, config.layers, pattern, 4096);
  return config;
}

TensorNames names() {
  TensorNames names;
  names.attention_post_norm = "post_attention_layernorm";
  names.mlp_post_norm = "post_feedforward_layernorm";
  return names;
}

void complete_olmo3(GgufConfig& gguf) {
  if (!copy_window_pattern(gguf))
    gguf.fill("sliding_window_pattern", 4, "not in the file; in all models of the family each fourth layer is global");
}

}  // namespace olmo2_family

Family olmo2() {
  using namespace olmo2_family;
  return {.name = "olmo2",
          .title = "OLMo 2",
          .examples = "OLMo 2 1B to 32B",
          .classes = {"Olmo2"},
          .parse = parse_olmo2,
          .tensors = names(),
          .gguf = {.architecture = "olmo2", .tensors = gguf_names()}};
}

Family olmo3() {
  using namespace olmo2_family;
  return {.name = "olmo3",
          .title = "OLMo 3",
          .examples = "OLMo 3 7B, OLMo 3 and 3.1 32B",
          .classes = {"Olmo3"},
          .parse = parse_olmo3,
          .keys = olmo3_keys,
          .tensors = names(),
          .gguf = {.architecture = "olmo2",
                   .chosen_by = "attention.sliding_window",
                   .tensors = gguf_names(),
                   .keys = {{"attention.sliding_window", "sliding_window"}},
                   .complete = complete_olmo3}};
}

}  // namespace gainlens::models
