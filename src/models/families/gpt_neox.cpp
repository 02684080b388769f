#include "core/check.h"
#include "core/error.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace gpt_neox_family {

constexpr CommonKeys keys_of(std::string_view base, std::string_view rotated) {
  return {.kv_heads = "",
          .head_dim = "",
          .norm_epsilon = "layer_norm_eps",
          .rope = {.base = base, .rotated = rotated, .default_rotated = 0.25}};
}

constexpr CommonKeys keys = keys_of("rotary_emb_base", "rotary_pct");

DecoderConfig parse(ConfigReader& reader) {
  const Json* base = reader.find_non_null("rope_theta");
  CHECK(base == nullptr || *base == 1e4 || reader.find_non_null("rotary_emb_base") != nullptr ||
            reader.find_non_null("rope_parameters") != nullptr,
        "{}: 'rope_theta' is {} without 'rotary_emb_base'; versions of the reference take this base or 10000, so give "
        "'rotary_emb_base'",
        reader.where(), brief(*base));
  // Files of 2024 have the names of other families too.
  const CommonKeys spelled =
      keys_of(either(reader, "rotary_emb_base", "rope_theta"), either(reader, "rotary_pct", "partial_rotary_factor"));
  DecoderConfig config = parse_common(
      reader, {.max_positions = 2048, .bos_token = 0, .norm_epsilon = 1e-5, .activation = Activation::gelu_erf},
      spelled);
  config.norm = Norm::layer;
  config.norm_bias = config.mlp_bias = true;
  config.qkv_bias = config.output_bias = reader.boolean("attention_bias", true);
  config.gated_mlp = false;
  config.parallel_residual = reader.boolean("use_parallel_residual", true);
  return config;
}

TensorNames names() {
  TensorNames names;
  names.prefix = "gpt_neox.";
  names.embedding = "embed_in";
  names.final_norm = "final_layer_norm";
  names.head = "embed_out";
  names.query_key_value = "attention.query_key_value";
  names.query_key_value_order = RowOrder::grouped;
  names.output = "attention.dense";
  names.mlp_up = "mlp.dense_h_to_4h";
  names.mlp_down = "mlp.dense_4h_to_h";
  return names;
}

void complete(GgufConfig& gguf) {
  gguf.fill("rotary_emb_base", 1e4, "not in the file; the value of this family");
}

}  // namespace gpt_neox_family

Family gpt_neox() {
  using namespace gpt_neox_family;
  return {.name = "gpt_neox",
          .title = "GPT-NeoX",
          .examples = "Pythia, GPT-NeoX-20B",
          .classes = {"GPTNeoX"},
          .parse = parse,
          .keys = keys,
          .tensors = names(),
          .inert_tensors = {".attention.bias", ".attention.masked_bias"},  // masks
          .gguf = {.architecture = "gptneox",
                   .tensors = gguf_joined_names(),
                   .keys = {{"use_parallel_residual", "use_parallel_residual"}},
                   .complete = complete}};
}

}  // namespace gainlens::models
