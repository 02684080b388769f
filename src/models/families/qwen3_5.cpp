#include "models/families/common_keys.h"
#include "models/families/delta_keys.h"
#include "models/families/expert_keys.h"
#include "models/families/family.h"
#include "models/families/text_config.h"

namespace gainlens::models {
namespace qwen3_5_family {

constexpr RopeKeys rope_keys{.rotated = "partial_rotary_factor", .sections = true, .default_rotated = 0.25};
constexpr CommonKeys qwen3_5_keys{.rope = rope_keys};
// Of layers that predict several tokens, which a language model does not run; mlp_only_layers without experts.
const std::vector<std::string_view> text_inert = {"mtp_num_hidden_layers", "mtp_use_dedicated_embeddings",
                                                  "mlp_only_layers"};

/// What the models with and without experts share.
DecoderConfig parse_attention(ConfigReader& reader, const CommonDefaults& defaults) {
  DecoderConfig config = parse_common(reader, defaults, qwen3_5_keys);
  config.norm_offset = parse_norm_offset(reader);
  config.gate = Gate::elementwise;
  require_value(reader, "attn_output_gate", true, "queries and gates are one tensor");
  config.qk_norm = QkNorm::head;
  config.qkv_bias = config.output_bias = reader.boolean("attention_bias", false);
  config.delta = parse_delta_layers(reader, config.layers);
  return config;
}

DecoderConfig parse_dense(ConfigReader& reader) {
  return parse_attention(reader, {.max_positions = 32768, .kv_heads = 4, .head_dim = 256});
}

DecoderConfig parse_moe(ConfigReader& reader) {
  // No layer has an MLP without experts: a width of such an MLP has no effect, and files leave it out.
  DecoderConfig config =
      parse_attention(reader, {.max_positions = 32768, .kv_heads = 2, .head_dim = 256, .mlp_ratio = 1});
  config.experts = parse_experts(reader, either(reader, "num_experts", "num_local_experts"), 256, 8);
  config.experts.width = reader.integer("moe_intermediate_size", 1, max_expert_width, 512);
  config.experts.shared_width = reader.integer("shared_expert_intermediate_size", 1, max_expert_width, 512);
  config.experts.shared_score = true;
  require_value(reader, "norm_topk_prob", true, "the weights of the chosen experts sum to 1");
  return config;
}

std::vector<std::string_view> moe_inert() {
  std::vector<std::string_view> keys = router_training_keys();
  keys.insert(keys.end(), text_inert.begin(), text_inert.end());
  return keys;
}

DecoderConfig parse_dense_multimodal(ConfigReader& reader) {
  return parse_text_config(reader, "qwen3_5");
}

DecoderConfig parse_moe_multimodal(ConfigReader& reader) {
  return parse_text_config(reader, "qwen3_5_moe");
}

TensorNames dense_names() {
  TensorNames names = delta_names();
  names.delta_query_key_value = "linear_attn.in_proj_qkv";
  names.delta_gate = "linear_attn.in_proj_z";
  names.delta_beta = "linear_attn.in_proj_b";
  names.delta_decay = "linear_attn.in_proj_a";
  return names;
}

TensorNames moe_names() {
  TensorNames names = dense_names();
  names.router = "mlp.gate";
  names.expert_gate_up = "mlp.experts.gate_up_proj";
  names.expert_down_stack = "mlp.experts.down_proj";
  names.expert_stacks_by_output = true;
  names.shared_gate = "mlp.shared_expert.gate_proj";
  names.shared_up = "mlp.shared_expert.up_proj";
  names.shared_down = "mlp.shared_expert.down_proj";
  names.shared_score = "mlp.shared_expert_gate";
  return names;
}

/// A GGUF file holds the language model alone; other files hold what reads images.
GgufFamily gguf_of(std::string_view architecture) {
  TensorNames names = gguf_delta_names();
  names.delta_beta = "ssm_beta";
  names.delta_decay = "ssm_alpha";
  names.delta_heads_tiled = true;
  // The sections of a rotation in several dimensions: in text all positions of a token are equal.
  return {.architecture = architecture,
          .tensors = names,
          .keys = gguf_delta_keys(),
          .inert_keys = {"rope.dimension_sections"},
          .complete = complete_delta};
}

/// The multimodal checkpoint of a text model: its names begin in another way, and it has more keys and tensors.
Family multimodal(Family text) {
  text.class_suffix = "ForConditionalGeneration";
  text.tensors.prefix = "model.language_model.";
  text.inert_keys = {"vision_config"};
  text.inert_tensors = {"model.visual.", "mtp."};
  text.gguf = {};
  return text;
}

}  // namespace qwen3_5_family

Family qwen3_5() {
  using namespace qwen3_5_family;
  return {.name = "qwen3_5_text",
          .title = "Qwen 3.5",
          .examples = "the text models of Qwen 3.5 alone",
          .classes = {"Qwen3_5", "Qwen3_5Text"},
          .parse = parse_dense,
          .keys = qwen3_5_keys,
          .tensors = dense_names(),
          .inert_keys = text_inert,
          .inert_tensors = {"model.visual.", "mtp."},
          .gguf = gguf_of("qwen35")};
}

Family qwen3_5_multimodal() {
  using namespace qwen3_5_family;
  Family family = multimodal(qwen3_5());
  family.name = "qwen3_5";
  family.title = "Qwen 3.5, multimodal";
  family.examples = "Qwen 3.5 27B; its language model";
  family.parse = parse_dense_multimodal;
  return family;
}

Family qwen3_5_moe() {
  using namespace qwen3_5_family;
  return {.name = "qwen3_5_moe_text",
          .title = "Qwen 3.5 MoE",
          .examples = "the text models of Qwen 3.5 with experts alone",
          .classes = {"Qwen3_5Moe", "Qwen3_5MoeText"},
          .parse = parse_moe,
          .keys = qwen3_5_keys,
          .tensors = moe_names(),
          .inert_keys = moe_inert(),
          .inert_tensors = {"model.visual.", "mtp."},
          .gguf = gguf_of("qwen35moe")};
}

Family qwen3_5_moe_multimodal() {
  using namespace qwen3_5_family;
  Family family = multimodal(qwen3_5_moe());
  family.name = "qwen3_5_moe";
  family.title = "Qwen 3.5 MoE, multimodal";
  family.examples = "Qwen 3.5 35B-A3B; its language model";
  family.parse = parse_moe_multimodal;
  return family;
}

}  // namespace gainlens::models
