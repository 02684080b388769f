#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace ernie4_5_family {

constexpr CommonKeys keys{.rope = {.default_base = 5e5}};

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config = parse_common(reader,
                                      {.max_positions = 131072,
                                       .kv_heads = 2,
                                       .head_dim = 128,
                                       .bos_token = 1,
                                       .norm_epsilon = 1e-5,
                                       .tied_head = true},
                                      keys);
  config.qkv_bias = config.output_bias = config.mlp_bias = reader.boolean("use_bias", false);
  require_value(reader, "compression_ratio", 1.0, "positions are not compressed");
  return config;
}

TensorNames names() {
  TensorNames names;
  names.rotary_pairs = true;
  return names;
}

void complete(GgufConfig& gguf) {
  gguf.config["use_bias"] = gguf.has_tensor("blk.0.attn_q.bias");
}

}  // namespace ernie4_5_family

Family ernie4_5() {
  using namespace ernie4_5_family;
  return {.name = "ernie4_5",
          .title = "ERNIE 4.5",
          .examples = "ERNIE 4.5 0.3B",
          .classes = {"Ernie4_5", "Ernie4_5_"},
          .parse = parse,
          .keys = keys,
          .tensors = names(),
          .gguf = {.architecture = "ernie4_5", .tensors = gguf_paired_names(), .complete = complete}};
}

}  // namespace gainlens::models
