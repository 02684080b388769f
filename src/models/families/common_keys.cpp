#include "models/families/common_keys.h"

#include "core/error.h"
#include "core/nearest.h"
#include "models/rope_config.h"

#include <map>
#include <string>

namespace gainlens::models {
namespace {

// Far above any model there is, and small enough that products of two of them fit in int64; whole counts are checked besides.
constexpr std::int64_t max_layers = 4096;
constexpr std::int64_t max_width = std::int64_t{1} << 20;
constexpr std::int64_t max_heads = std::int64_t{1} << 14;
constexpr std::int64_t max_head_dim = std::int64_t{1} << 14;
constexpr std::int64_t max_mlp_width = std::int64_t{1} << 24;
constexpr std::int64_t max_vocabulary = std::int64_t{1} << 31;
constexpr std::int64_t max_context = std::int64_t{1} << 31;

Activation parse_activation(ConfigReader& reader) {
  static const std::map<std::string, Activation, std::less<>> known = {{"silu", Activation::silu},
                                                                       {"swish", Activation::silu},
                                                                       {"gelu", Activation::gelu_erf},
                                                                       {"gelu_new", Activation::gelu_tanh},
                                                                       {"gelu_pytorch_tanh", Activation::gelu_tanh}};
  const std::string name = reader.text("hidden_act", "silu");
  if (const auto found = known.find(name); found != known.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known_name, activation] : known) names.push_back(known_name);
  throw_invalid("{}: {} is '{}'; must be silu, gelu, gelu_new or gelu_pytorch_tanh{}", reader.where(), reader.quoted("hidden_act"),
                printable(name, 60), did_you_mean(name.substr(0, 60), names));
}

/// `torch_dtype` was renamed `dtype`; both may be written "torch.float32".
void check_dtypes_agree(ConfigReader& reader) {
  const auto read = [&reader](std::string_view key) {
    std::string name = reader.find_non_null(key) == nullptr ? "" : reader.text(key);
    if (name.starts_with("torch.")) name.erase(0, 6);
    return name;
  };
  const std::string dtype = read("dtype"), torch_dtype = read("torch_dtype");
  CHECK(dtype.empty() || torch_dtype.empty() || dtype == torch_dtype, "{}: 'dtype' is '{}' and 'torch_dtype' is '{}'; they must agree",
        reader.where(), printable(dtype, 60), printable(torch_dtype, 60));
}

std::optional<std::int64_t> parse_bos(ConfigReader& reader, std::optional<std::int64_t> fallback, std::int64_t vocabulary) {
  const Json* value = reader.find("bos_token_id");
  if (value == nullptr) return fallback && *fallback < vocabulary ? fallback : std::nullopt;
  if (value->is_array()) {
    if (value->empty()) return std::nullopt;
    value = &value->front();
  }
  if (value->is_null()) return std::nullopt;
  CHECK(value->is_number_integer() && *value >= 0 && *value < vocabulary,
        "{}: 'bos_token_id' is {}; must be null or an id below vocab_size ({})", reader.where(), brief(*value), vocabulary);
  return value->get<std::int64_t>();
}

void parse_heads(ConfigReader& reader, const CommonDefaults& defaults, DecoderConfig& config) {
  config.heads = reader.integer("num_attention_heads", 1, max_heads);
  // Null means one KV head per head in every family; what an absent key means differs.
  const Json* kv_heads = reader.find("num_key_value_heads");
  const bool is_null = kv_heads != nullptr && kv_heads->is_null();
  config.kv_heads = is_null ? config.heads : reader.integer("num_key_value_heads", 1, max_heads, defaults.kv_heads.value_or(config.heads));
  CHECK(config.heads % config.kv_heads == 0,
        "{}: 'num_attention_heads' is {} and 'num_key_value_heads' is {}; the former must be a multiple", reader.where(), config.heads,
        config.kv_heads);

  // Null means width / heads, except in a family with a default of its own, where nobody knows.
  const Json* head_dim = reader.find("head_dim");
  if (defaults.head_dim || (head_dim != nullptr && !head_dim->is_null())) {
    config.head_dim = reader.integer("head_dim", 2, max_head_dim, defaults.head_dim);
  } else {
    CHECK(config.width % config.heads == 0,
          "{}: 'hidden_size' is {} and 'num_attention_heads' is {}; the former must be a multiple, or give 'head_dim'", reader.where(),
          config.width, config.heads);
    config.head_dim = config.width / config.heads;
  }
  CHECK(config.head_dim % 2 == 0, "{}: head_dim is {}; the rotary embedding needs an even one", reader.where(), config.head_dim);
}

void refuse_other_mathematics(ConfigReader& reader) {
  const Json* quantization = reader.find_non_null("quantization_config");
  CHECK(quantization == nullptr, "{}: 'quantization_config' is {}; quantised weights are not read: give the checkpoint they were made from",
        reader.where(), brief(*quantization));
  require_value(reader, "pretraining_tp", 1, "projections split for tensor parallelism add up in another order");
  require_value(reader, "partial_rotary_factor", 1, "only whole heads are rotated");
  require_value(reader, "rope_interleaved", false, "dimension i is rotated with i + head_dim/2");
  require_value(reader, "is_encoder_decoder", false, "only decoders are run");
  require_value(reader, "add_cross_attention", false, "only decoders are run");
  require_value(reader, "cross_attention_hidden_size", nullptr, "only decoders are run");
  require_value(reader, "pruned_heads", Json::object(), "all heads of all layers are alike");
  require_value(reader, "per_layer_config", nullptr, "all layers are alike");
}

}  // namespace

void require_value(ConfigReader& reader, std::string_view key, const Json& required, std::string_view why) {
  const Json* value = reader.find_non_null(key);
  CHECK(value == nullptr || *value == required, "{}: {} is {}; must be {}: {}", reader.where(), reader.quoted(key), brief(*value),
        required.dump(), why);
}

DecoderConfig parse_common(ConfigReader& reader, const CommonDefaults& defaults) {
  DecoderConfig config;
  config.layers = reader.integer("num_hidden_layers", 1, max_layers);
  config.width = reader.integer("hidden_size", 1, max_width);
  config.mlp_width = reader.integer("intermediate_size", 1, max_mlp_width);
  config.vocabulary = reader.integer("vocab_size", 1, max_vocabulary);
  parse_heads(reader, defaults, config);
  // As declared: files with llama3 or yarn scaling already state the extended length.
  config.max_positions = reader.integer("max_position_embeddings", 1, max_context, defaults.max_positions);
  config.norm_epsilon = reader.number("rms_norm_eps", 1e-30, 1, 1e-6);
  config.activation = parse_activation(reader);
  config.tied_head = reader.boolean("tie_word_embeddings", false);
  config.rope = parse_rope(reader, config.max_positions);
  config.window.assign(static_cast<std::size_t>(config.layers), 0);
  config.bos_token = parse_bos(reader, defaults.bos_token, config.vocabulary);
  check_dtypes_agree(reader);
  refuse_other_mathematics(reader);
  return config;
}

std::int64_t parse_window(ConfigReader& reader, std::int64_t fallback) {
  const Json* value = reader.find("sliding_window");
  if (value != nullptr && value->is_null()) return 0;
  return reader.integer("sliding_window", 1, max_context, fallback);
}

std::vector<std::int64_t> parse_layer_windows(ConfigReader& reader, std::int64_t layers) {
  const bool used = reader.boolean("use_sliding_window", false);
  const std::int64_t declared = parse_window(reader, 4096);
  const std::int64_t window = used ? declared : 0;
  const std::int64_t first_windowed = reader.integer("max_window_layers", 0, max_context, 28);

  std::vector<std::int64_t> windows(static_cast<std::size_t>(layers), 0);
  const Json* types = reader.find_non_null("layer_types");
  if (types == nullptr) {
    for (std::int64_t layer = first_windowed; layer < layers; ++layer) windows[static_cast<std::size_t>(layer)] = window;
    return windows;
  }
  CHECK(types->is_array() && types->size() == windows.size(), "{}: 'layer_types' is {}; must be a list of {} names, one per layer",
        reader.where(), brief(*types), layers);
  for (std::size_t layer = 0; layer < windows.size(); ++layer) {
    const Json& type = (*types)[layer];
    if (type == "full_attention") continue;
    CHECK(type == "sliding_attention", "{}: 'layer_types' has {} at layer {}; must be \"full_attention\" or \"sliding_attention\"",
          reader.where(), brief(type), layer);
    CHECK(window > 0,
          "{}: 'layer_types' has \"sliding_attention\" at layer {}, but use_sliding_window is {} and sliding_window is {}; set both",
          reader.where(), layer, used, declared == 0 ? "null" : std::to_string(declared));
    windows[layer] = window;
  }
  return windows;
}

}  // namespace gainlens::models
