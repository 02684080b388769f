#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace mistral_family {

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config = parse_common(reader, {.max_positions = 131072, .kv_heads = 8, .bos_token = 1});
  config.window.assign(config.window.size(), parse_window(reader, 4096));
  require_value(reader, "attention_bias", false, "the projections of this family have no biases");
  return config;
}

}  // namespace mistral_family

Family mistral() {
  using namespace mistral_family;
  return {.name = "mistral",
          .title = "Mistral",
          .examples = "Mistral 7B, Mistral Nemo",
          .classes = {"Mistral"},
          .parse = parse,
          .tensors = {},
          .gguf = {.architecture = "llama",
                   .chosen_by = "attention.sliding_window",
                   .tensors = gguf_paired_names(),
                   .keys = {{"attention.sliding_window", "sliding_window"}}}};
}

}  // namespace gainlens::models
