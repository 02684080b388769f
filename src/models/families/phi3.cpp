#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace phi3_family {

constexpr CommonKeys keys{
    .rope = {.rotated = "partial_rotary_factor", .yarn_is_longrope = true, .default_original = 4096}};

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config = parse_common(reader, {.max_positions = 4096, .bos_token = 1, .norm_epsilon = 1e-5}, keys);
  CHECK(config.rope.scaling == RopeScaling::none || config.rope.scaling == RopeScaling::longrope,
        "{}: the rotary embedding has a scaling other than longrope; the reference of this family computes no other",
        reader.where());
  // This family has no window if the key is absent. The fallback is not used.
  if (reader.find_non_null("sliding_window") != nullptr)
    config.window.assign(config.window.size(), parse_window(reader, 1));
  require_value(reader, "attention_bias", false, "the projections of this family have no biases");
  return config;
}

TensorNames names() {
  TensorNames names;
  names.query_key_value = "self_attn.qkv_proj";
  names.mlp_gate_up = "mlp.gate_up_proj";
  return names;
}

TensorNames file_names() {
  TensorNames names = gguf_joined_names();
  names.mlp_gate_up = "ffn_up";
  return names;
}

void complete(GgufConfig& gguf) {
  // Files have 0 for no window.
  if (gguf.find("attention.sliding_window") == nullptr) return;
  const std::int64_t window = gguf.metadata().integer(gguf.full("attention.sliding_window"), 0, std::int64_t{1} << 31);
  gguf.config["sliding_window"] = window == 0 ? Json(nullptr) : Json(window);
}

}  // namespace phi3_family

Family phi3() {
  using namespace phi3_family;
  return {.name = "phi3",
          .title = "Phi-3",
          .examples = "Phi-3 mini and medium, Phi-3.5 mini, Phi-4, Phi-4 mini",
          .classes = {"Phi3"},
          .parse = parse,
          .keys = keys,
          .tensors = names(),
          .inert_keys = {"embd_layer"},
          .gguf = {.architecture = "phi3", .tensors = file_names(), .complete = complete}};
}

}  // namespace gainlens::models
