#include "models/families/common_keys.h"

#include "core/check.h"
#include "core/nearest.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>

namespace gainlens::models {
namespace {

// Far above any real model, and small enough that products of two of them fit in int64. Totals are checked separately.
constexpr std::int64_t max_layers = 4096;
constexpr std::int64_t max_width = std::int64_t{1} << 20;
constexpr std::int64_t max_heads = std::int64_t{1} << 14;
constexpr std::int64_t max_head_dim = std::int64_t{1} << 14;
constexpr std::int64_t max_mlp_width = std::int64_t{1} << 24;
constexpr std::int64_t max_vocabulary = std::int64_t{1} << 31;
constexpr std::int64_t max_context = std::int64_t{1} << 31;

const std::map<std::string_view, Activation>& activations() {
  static const std::map<std::string_view, Activation> known = {
      {"silu", Activation::silu},           {"swish", Activation::silu},
      {"gelu", Activation::gelu_erf},       {"gelu_new", Activation::gelu_tanh},
      {"gelu_fast", Activation::gelu_tanh}, {"gelu_pytorch_tanh", Activation::gelu_tanh},
      {"relu", Activation::relu},           {"relu2", Activation::squared_relu}};
  return known;
}

Activation parse_activation(ConfigReader& reader, std::string_view key, Activation fallback) {
  if (reader.find_non_null(key) == nullptr) return fallback;
  const std::string name = reader.text(key);
  if (const auto found = activation_named(name)) return *found;
  std::vector<std::string> names;
  for (const auto& [known_name, activation] : activations()) names.emplace_back(known_name);
  throw_invalid("{}: {} is '{}'; must be silu, gelu, gelu_new, gelu_fast, gelu_pytorch_tanh or relu{}", reader.where(),
                reader.quoted(key), printable(name, 60), did_you_mean(name.substr(0, 60), names));
}

void parse_heads(ConfigReader& reader, const CommonDefaults& defaults, const CommonKeys& keys, DecoderConfig& config) {
  config.heads = reader.integer(keys.heads, 1, max_heads, defaults.heads);
  config.kv_heads = config.heads;
  if (!keys.kv_heads.empty()) {
    // In every family, null means one KV head for each head. The meaning of an absent key differs.
    const Json* kv_heads = reader.find(keys.kv_heads);
    const bool is_null = kv_heads != nullptr && kv_heads->is_null();
    if (!is_null)
      config.kv_heads = reader.integer(keys.kv_heads, 1, max_heads, defaults.kv_heads.value_or(config.heads));
    CHECK(config.heads % config.kv_heads == 0,
          "{}: '{}' is {} and '{}' is {}; the first must be a multiple of the second", reader.where(), keys.heads,
          config.heads, keys.kv_heads, config.kv_heads);
  }

  // Null means width / heads. In a family that has a default of its own, the meaning of null is unknown, so null is
  // refused.
  const Json* head_dim = keys.head_dim.empty() ? nullptr : reader.find(keys.head_dim);
  if (defaults.head_dim || (head_dim != nullptr && !head_dim->is_null())) {
    config.head_dim = reader.integer(keys.head_dim, 1, max_head_dim, defaults.head_dim);
  } else {
    CHECK(config.width % config.heads == 0,
          "{}: '{}' is {} and '{}' is {}; the first must be a multiple of the second{}", reader.where(), keys.width,
          config.width, keys.heads, config.heads, keys.head_dim.empty() ? "" : ", or give 'head_dim'");
    config.head_dim = config.width / config.heads;
  }
}

void parse_rotation(ConfigReader& reader, const CommonKeys& keys, DecoderConfig& config) {
  Ropes ropes = parse_ropes(reader, config.max_positions, keys.rope);
  config.rope = std::move(ropes.rope);
  config.window_rope = std::move(ropes.window);
  // As in the reference: the product is truncated to a whole number.
  const bool proportional = config.rope.scaling == RopeScaling::proportional;  // of whole pairs
  const auto rotated = proportional
                           ? config.head_dim
                           : static_cast<std::int64_t>(static_cast<double>(config.head_dim) * config.rope.rotated);
  CHECK((config.rope.rotated != 1 && !proportional) || config.head_dim % 2 == 0,
        "{}: head_dim is {}; the rotary embedding needs an even one", reader.where(), config.head_dim);
  CHECK(rotated >= 2 && rotated % 2 == 0,
        "{}: {} of a head's {} dimensions are rotated; it must be an even number, at least 2", reader.where(), rotated,
        config.head_dim);
  const auto pairs = static_cast<std::size_t>(rotated / 2);
  CHECK(config.rope.scaling != RopeScaling::longrope ||
            (config.rope.short_factors.size() == pairs && config.rope.long_factors.size() == pairs),
        "{}: {} short and {} long factors of longrope; there must be {} of each kind, one for each rotated pair",
        reader.where(), config.rope.short_factors.size(), config.rope.long_factors.size(), pairs);
}

/// What to fetch in place of weights that were quantised by a method that is not read.
std::string unquantised_name(const ConfigReader& reader, std::string_view method) {
  const auto path = reader.json().find("_name_or_path");
  std::string name = path != reader.json().end() && path->is_string() ? path->get<std::string>() : "";
  std::string lower = name;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (const std::size_t at = lower.find(fmt::format("-{}", method)); at != std::string::npos) name.erase(at);
  const bool plain = std::count(name.begin(), name.end(), '/') == 1 && name.front() != '/' && name.front() != '.';
  return plain ? fmt::format("'{}'", printable(name, 100)) : "the checkpoint that they were made from";
}

/// Accepts the methods whose tensors are read: MXFP4, and FP8 in blocks of 128 x 128.
void check_quantization(ConfigReader& reader) {
  const Json* whole = reader.find_non_null("quantization_config");
  if (whole == nullptr) return;
  CHECK(whole->is_object(), "{}: {} is {}; must be an object", reader.where(), reader.quoted("quantization_config"),
        brief(*whole));
  ConfigReader quantization = *reader.object("quantization_config");
  const std::string method =
      quantization.find_non_null("quant_method") == nullptr ? "" : quantization.text("quant_method");
  const auto refuse = [&](std::string_view why) {
    throw_invalid("{}: {} is {}; {}", reader.where(), reader.quoted("quantization_config"), brief(*whole), why);
  };
  if (method == "gptq" || method == "awq") {
    refuse(fmt::format("weights quantised by {} are not read: fetch {}, or a GGUF file of it", method,
                       unquantised_name(reader, method)));
  }
  if (method != "fp8" && method != "mxfp4") {
    refuse(
        "of quantised weights, MXFP4 and FP8 in blocks of 128 x 128 are read, and GGUF files: give the checkpoint they "
        "were made from");
  }
  for (const char* key : {"modules_to_not_convert", "ignored_layers"})
    quantization.find(key);  // the files show which tensors have scales
  if (method == "fp8") {
    // Statically quantised activations have scales of their own. Those of `dynamic` are computed here without rounding.
    require_value(quantization, "activation_scheme", "dynamic", "activations are not quantised");
    require_value(quantization, "fmt", "e4m3", "other formats of 8 bits are not read");
    const Json* block = quantization.find_non_null("weight_block_size");
    if (block == nullptr || *block != Json({128, 128}))
      refuse(
          "of FP8 weights those with 'weight_block_size' [128, 128] are read: give the checkpoint they were made "
          "from");
    quantization.find("scale_fmt");
  }
  quantization.refuse_unread_values();
}

void refuse_other_mathematics(ConfigReader& reader) {
  check_quantization(reader);
  for (const char* key : {"quantization", "compression_config"}) {
    const Json* quantization = reader.find_non_null(key);
    CHECK(quantization == nullptr,
          "{}: {} is {}; quantised weights are not read: give the checkpoint they were made from", reader.where(),
          reader.quoted(key), brief(*quantization));
  }
  require_value(reader, "rope_interleaved", false, "dimension i is rotated with i + head_dim/2");
  require_value(reader, "is_encoder_decoder", false, "only decoders are run");
  require_value(reader, "add_cross_attention", false, "only decoders are run");
  require_value(reader, "cross_attention_hidden_size", nullptr, "only decoders are run");
  require_value(reader, "pruned_heads", Json::object(), "all heads of all layers are alike");
  require_value(reader, "per_layer_config", nullptr, "all layers are alike");
}

}  // namespace

std::optional<Activation> activation_named(std::string_view name) {
  const auto found = activations().find(name);
  return found == activations().end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::int64_t> parse_bos(ConfigReader& reader, std::optional<std::int64_t> fallback,
                                      std::int64_t vocabulary) {
  const Json* value = reader.find("bos_token_id");
  if (value == nullptr) return fallback && *fallback < vocabulary ? fallback : std::nullopt;
  if (value->is_array()) {
    if (value->empty()) return std::nullopt;
    value = &value->front();
  }
  if (value->is_null()) return std::nullopt;
  CHECK(value->is_number_integer(), "{}: {} is {}; must be null or an id below vocab_size ({})", reader.where(),
        reader.quoted("bos_token_id"), brief(*value), vocabulary);
  if (*value >= 0 && *value < vocabulary) return value->get<std::int64_t>();
  reader.note(bos_outside(reader.unquoted("bos_token_id"), brief(*value), vocabulary));
  return std::nullopt;
}

std::string bos_outside(std::string_view key, std::string_view id, std::int64_t vocabulary) {
  return fmt::format("{} is {}, and the vocabulary has {} tokens; the model is taken as one without a BOS", key, id,
                     vocabulary);
}

std::string_view either(ConfigReader& reader, std::string_view first, std::string_view second) {
  const Json* one = reader.find_non_null(first);
  const Json* other = reader.find_non_null(second);
  CHECK(one == nullptr || other == nullptr || *one == *other,
        "{}: {} is {} and {} is {}; they mean the same and must agree", reader.where(), reader.quoted(first),
        brief(*one), reader.quoted(second), brief(*other));
  return one == nullptr && other != nullptr ? second : first;
}

void require_value(ConfigReader& reader, std::string_view key, const Json& required, std::string_view why) {
  const Json* value = reader.find_non_null(key);
  CHECK(value == nullptr || *value == required, "{}: {} is {}; must be {}: {}", reader.where(), reader.quoted(key),
        brief(*value), required.dump(), why);
}

DecoderConfig parse_common(ConfigReader& reader, const CommonDefaults& defaults, const CommonKeys& keys) {
  DecoderConfig config;
  config.layers = reader.integer(keys.layers, 1, max_layers);
  config.width = reader.integer(keys.width, 1, max_width);
  const bool derived =
      defaults.mlp_ratio && (keys.mlp_width.empty() || reader.find_non_null(keys.mlp_width) == nullptr);
  config.mlp_width = derived ? *defaults.mlp_ratio * config.width : reader.integer(keys.mlp_width, 1, max_mlp_width);
  config.vocabulary = reader.integer("vocab_size", 1, max_vocabulary, defaults.vocabulary);
  parse_heads(reader, defaults, keys, config);
  // As declared: files with llama3 or yarn scaling already give the extended length.
  config.max_positions = reader.integer(keys.positions, 1, max_context, defaults.max_positions);
  config.norm_epsilon = keys.norm_epsilon.empty() ? defaults.norm_epsilon
                                                  : reader.number(keys.norm_epsilon, 1e-30, 1, defaults.norm_epsilon);
  config.activation =
      keys.activation.empty() ? defaults.activation : parse_activation(reader, keys.activation, defaults.activation);
  config.tied_head = reader.boolean("tie_word_embeddings", defaults.tied_head);
  config.positions = defaults.positions;
  if (config.positions == Positions::rotary) parse_rotation(reader, keys, config);
  config.window.assign(static_cast<std::size_t>(config.layers), 0);
  config.bos_token = parse_bos(reader, defaults.bos_token, config.vocabulary);
  refuse_other_mathematics(reader);
  return config;
}

double parse_optional_positive(ConfigReader& reader, std::string_view key, std::optional<double> fallback) {
  const Json* value = reader.find(key);
  if (value == nullptr) return fallback.value_or(0);
  return value->is_null() ? 0 : reader.number(key, 1e-30, 1e30);
}

std::int64_t parse_window(ConfigReader& reader, std::int64_t fallback) {
  const Json* value = reader.find("sliding_window");
  if (value != nullptr && value->is_null()) return 0;
  return reader.integer("sliding_window", 1, max_context, fallback);
}

std::int64_t parse_window_pattern(ConfigReader& reader, std::int64_t fallback) {
  const std::int64_t pattern = reader.integer("sliding_window_pattern", 1, 4096, fallback);
  const Json* written = reader.find_non_null("_sliding_window_pattern");
  CHECK(written == nullptr || *written == pattern || reader.find_non_null("layer_types") != nullptr,
        "{}: '_sliding_window_pattern' is {}, and the Python reference ignores it and computes with {}: name it "
        "'sliding_window_pattern', or give 'layer_types'",
        reader.where(), brief(*written), pattern);
  return pattern;
}

double parse_norm_offset(ConfigReader& reader) {
  return reader.number(norm_offset_key, 0, 1, 1);
}

std::vector<std::int64_t> windows_by_type(ConfigReader& reader, std::int64_t layers, std::int64_t window,
                                          const std::string& why_none) {
  const Json* types = reader.find_non_null("layer_types");
  if (types == nullptr) return {};
  std::vector<std::int64_t> windows(static_cast<std::size_t>(layers), 0);
  CHECK(types->is_array() && types->size() == windows.size(),
        "{}: 'layer_types' is {}; must be a list of {} names, one per layer", reader.where(), brief(*types), layers);
  for (std::size_t layer = 0; layer < windows.size(); ++layer) {
    const Json& type = (*types)[layer];
    if (type == "full_attention") continue;
    CHECK(type == "sliding_attention",
          "{}: 'layer_types' has {} at layer {}; must be \"full_attention\" or \"sliding_attention\"", reader.where(),
          brief(type), layer);
    CHECK(window > 0, "{}: 'layer_types' has \"sliding_attention\" at layer {}, but {}", reader.where(), layer,
          why_none);
    windows[layer] = window;
  }
  return windows;
}

std::vector<std::int64_t> parse_layer_windows(ConfigReader& reader, std::int64_t layers) {
  const bool used = reader.boolean("use_sliding_window", false);
  const Json* stored = reader.find("sliding_window");  // a number that is not used need not be one
  const std::int64_t window = used ? parse_window(reader, 4096) : 0;
  const std::int64_t first_windowed = reader.integer("max_window_layers", 0, max_context, 28);
  std::vector<std::int64_t> windows =
      windows_by_type(reader, layers, window,
                      fmt::format("use_sliding_window is {} and sliding_window is {}; set both", used,
                                  stored == nullptr ? "absent" : brief(*stored)));
  if (!windows.empty()) return windows;
  windows.assign(static_cast<std::size_t>(layers), 0);
  for (std::int64_t layer = first_windowed; layer < layers; ++layer) windows[static_cast<std::size_t>(layer)] = window;
  return windows;
}

std::vector<std::int64_t> parse_alternating_windows(ConfigReader& reader, std::int64_t layers, std::int64_t pattern,
                                                    std::int64_t fallback) {
  const std::int64_t window = parse_window(reader, fallback);
  std::vector<std::int64_t> windows = windows_by_type(reader, layers, window, "sliding_window is null; set it");
  if (!windows.empty()) return windows;
  windows.assign(static_cast<std::size_t>(layers), 0);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    if ((layer + 1) % pattern != 0) windows[static_cast<std::size_t>(layer)] = window;
  }
  return windows;
}

}  // namespace gainlens::models
