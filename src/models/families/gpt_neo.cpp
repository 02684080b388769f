#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace gpt_neo_family {

constexpr std::int64_t max_window = std::int64_t{1} << 31;

constexpr CommonKeys keys_of(std::string_view layers, std::string_view heads) {
  return {.layers = layers,
          .heads = heads,
          .kv_heads = "",
          .head_dim = "",
          .activation = "activation_function",
          .norm_epsilon = "layer_norm_epsilon"};
}

constexpr CommonKeys keys = keys_of("num_layers", "num_heads");

/// One name for each layer, from `attention_types`: [[["global", "local"], 12]] is 12 times this pair.
Json expanded_types(const ConfigReader& reader, const Json& types, std::int64_t layers) {
  const auto refuse = [&] {
    throw_invalid("{}: 'attention_types' is {}; must be a list of [[names], count], for {} layers in all",
                  reader.where(), brief(types), layers);
  };
  if (!types.is_array()) refuse();
  Json names = Json::array();
  for (const Json& part : types) {
    const bool formed = part.is_array() && part.size() == 2 && part[0].is_array() && !part[0].empty() &&
                        part[1].is_number_integer() && part[1] >= 0 && part[1] <= layers;
    if (!formed) refuse();
    for (std::int64_t i = 0; i < part[1].get<std::int64_t>(); ++i) {
      for (const Json& name : part[0]) names.push_back(name);
      if (std::ssize(names) > layers) refuse();
    }
  }
  return names;
}

/// Windows by `attention_types`, or by `attention_layers`, which repeats it. Layers alternate if both are absent.
std::vector<std::int64_t> parse_windows(ConfigReader& reader, std::int64_t layers) {
  const std::int64_t window = reader.integer("window_size", 1, max_window, 256);
  const Json* types = reader.find_non_null("attention_types");
  const Json* listed = reader.find_non_null("attention_layers");
  Json names;
  if (types != nullptr) {
    names = expanded_types(reader, *types, layers);
    CHECK(listed == nullptr || *listed == names,
          "{}: 'attention_layers' is {} and 'attention_types' is {}; they mean the same and must agree", reader.where(),
          brief(*listed), brief(*types));
  } else {
    names = listed != nullptr ? *listed : expanded_types(reader, Json::parse(R"([[["global", "local"], 12]])"), layers);
  }
  CHECK(names.is_array() && std::ssize(names) == layers,
        "{}: the kinds of attention are {}; there must be one for each of {} layers", reader.where(), brief(names),
        layers);
  std::vector<std::int64_t> windows;
  for (const Json& name : names) {
    CHECK(name == "global" || name == "local", "{}: a layer's kind of attention is {}; must be global or local",
          reader.where(), brief(name));
    windows.push_back(name == "local" ? window : 0);
  }
  return windows;
}

DecoderConfig parse(ConfigReader& reader) {
  const CommonKeys spelled =
      keys_of(either(reader, "num_layers", "num_hidden_layers"), either(reader, "num_heads", "num_attention_heads"));
  DecoderConfig config = parse_common(reader,
                                      {.max_positions = 2048,
                                       .bos_token = 50256,
                                       .norm_epsilon = 1e-5,
                                       .activation = Activation::gelu_tanh,
                                       .tied_head = true,
                                       .mlp_ratio = 4,
                                       .positions = Positions::learned},
                                      spelled);
  config.norm = Norm::layer;
  config.norm_bias = config.output_bias = config.mlp_bias = true;
  config.gated_mlp = false;
  config.attention_scale = 1;
  config.window = parse_windows(reader, config.layers);
  require_value(reader, "rotary", false, "this family does not rotate; the files of GPT-J have model_type gptj");
  return config;
}

TensorNames names() {
  TensorNames names;
  names.prefix = "transformer.";
  names.embedding = "wte";
  names.position_embedding = "wpe";
  names.final_norm = "ln_f";
  names.layer = "h.{}.";
  names.attention_norm = "ln_1";
  names.query = "attn.attention.q_proj";
  names.key = "attn.attention.k_proj";
  names.value = "attn.attention.v_proj";
  names.output = "attn.attention.out_proj";
  names.mlp_norm = "ln_2";
  names.mlp_up = "mlp.c_fc";
  names.mlp_down = "mlp.c_proj";
  return names;
}

}  // namespace gpt_neo_family

Family gpt_neo() {
  using namespace gpt_neo_family;
  return {.name = "gpt_neo",
          .title = "GPT-Neo",
          .examples = "GPT-Neo 125M to 2.7B, TinyStories",
          .classes = {"GPTNeo"},
          .parse = parse,
          .keys = keys,
          .tensors = names(),
          .inert_tensors = {".attn.attention.bias", ".attn.attention.masked_bias"}};  // masks
}

}  // namespace gainlens::models
