#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace cohere2_family {

constexpr CommonKeys keys{.head_dim = "", .norm_epsilon = "layer_norm_eps"};

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config =
      parse_common(reader, {.max_positions = 8192, .bos_token = 5, .norm_epsilon = 1e-5, .tied_head = true}, keys);
  config.norm = Norm::layer;
  config.qkv_bias = config.output_bias = reader.boolean("attention_bias", false);
  config.parallel_residual = config.shared_norm = true;
  config.logit_scale = reader.number("logit_scale", 1e-6, 1e6, 0.0625);
  const std::int64_t pattern = parse_window_pattern(reader, 4);
  config.window = parse_alternating_windows(reader, config.layers, pattern, 4096);
  for (const std::int64_t window : config.window) config.unrotated.push_back(window == 0);
  require_value(reader, "layer_switch", pattern, "it repeats sliding_window_pattern");
  require_value(reader, "order_of_interleaved_layers", "local_attn_first", "layers with a window come first");
  require_value(reader, "position_embedding_type", "rope_gptj", "neighbouring dimensions are rotated together");
  require_value(reader, "rotary_pct", 1.0, "whole heads are rotated");
  require_value(reader, "use_embedding_sharing", config.tied_head, "it repeats tie_word_embeddings");
  require_value(reader, "use_gated_activation", true, "the feed-forward layers have gates");
  require_value(reader, "use_parallel_block", true, "attention and MLP read the same stream");
  return config;
}

TensorNames names() {
  TensorNames names;
  names.rotary_pairs = true;
  return names;
}

void complete(GgufConfig& gguf) {
  if (!copy_window_pattern(gguf))
    gguf.fill("sliding_window_pattern", 4, "not in the file; in all models of the family each fourth layer is global");
}

}  // namespace cohere2_family

Family cohere2() {
  using namespace cohere2_family;
  return {.name = "cohere2",
          .title = "Cohere 2",
          .examples = "Command R7B, Command A, Tiny Aya",
          .classes = {"Cohere2"},
          .parse = parse,
          .keys = keys,
          .tensors = names(),
          .gguf = {.architecture = "cohere2",
                   .tensors = gguf_paired_names(),
                   .keys = {{"attention.sliding_window", "sliding_window"}, {"logit_scale", "logit_scale"}},
                   .complete = complete}};
}

}  // namespace gainlens::models
