#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace qwen2_family {

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config = parse_common(reader, {.max_positions = 32768, .kv_heads = 32});
  config.qkv_bias = true;  // the family has no key for this; its output projection has no bias
  config.window = parse_layer_windows(reader, config.layers);
  for (const char* key : {"attention_bias", "qkv_bias"})
    require_value(reader, key, true, "queries, keys and values of this family have biases");
  require_value(reader, "use_mrope", false, "only positions of text are computed");
  return config;
}

}  // namespace qwen2_family

Family qwen2() {
  using namespace qwen2_family;
  return {.name = "qwen2",
          .title = "Qwen 2",
          .examples = "Qwen 1.5, Qwen 2, Qwen 2.5",
          .classes = {"Qwen2"},
          .parse = parse,
          .tensors = {},
          .gguf = {.architecture = "qwen2", .tensors = gguf_names()}};
}

}  // namespace gainlens::models
