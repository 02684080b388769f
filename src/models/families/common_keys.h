#pragma once

#include "models/decoder/decoder_config.h"
#include "models/families/config_reader.h"
#include "models/families/rope_config.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::models {

/// The names that a family uses for the keys that all decoders have. Each default is the most common name.
struct CommonKeys {
  std::string_view layers = "num_hidden_layers";
  std::string_view width = "hidden_size";
  std::string_view mlp_width = "intermediate_size";
  std::string_view heads = "num_attention_heads";
  std::string_view kv_heads = "num_key_value_heads";  ///< empty: as many as heads
  std::string_view head_dim = "head_dim";             ///< empty: width / heads
  std::string_view positions = "max_position_embeddings";
  std::string_view activation = "hidden_act";  ///< empty: not read
  std::string_view norm_epsilon = "rms_norm_eps";
  RopeKeys rope;
};

/// What a family uses for keys that its config.json leaves out. Sizes other than those below have no defaults: a file
/// without them is refused.
struct CommonDefaults {
  std::int64_t max_positions = 0;
  std::optional<std::int64_t> kv_heads;  ///< empty: as many as heads, as if the key were null
  std::optional<std::int64_t> head_dim;  ///< empty: width / heads
  std::optional<std::int64_t> bos_token;
  std::optional<std::int64_t> heads;
  std::optional<std::int64_t> vocabulary;
  double norm_epsilon = 1e-6;
  Activation activation = Activation::silu;
  bool tied_head = false;
  std::optional<std::int64_t> mlp_ratio;  ///< mlp_width / width if the key is absent or null; empty: it must be given
  Positions positions = Positions::rotary;
};

/// Reads the keys that all families share: sizes, activation, norm epsilon, tied head, RoPE and BOS. Sets a window of 0
/// in every layer. Also reads the keys that must have the one value that a Decoder computes (quantization_config,
/// is_encoder_decoder, ...).
///
/// bos_token_id may be an integer, a list (the first element is used), or null.
///
/// @throws InvalidArgument  as ConfigReader; heads is not a multiple of kv_heads; head_dim is not given and width is
///     not a multiple of heads; the number of rotated dimensions of a head is odd; the activation is not known
DecoderConfig parse_common(ConfigReader& reader, const CommonDefaults& defaults, const CommonKeys& keys = {});

/// `bos_token_id`. An id outside of the vocabulary is noted, and is none.
/// @param fallback  used if the key is absent
std::optional<std::int64_t> parse_bos(ConfigReader& reader, std::optional<std::int64_t> fallback,
                                      std::int64_t vocabulary);

/// What is noted about a BOS that is no id of the vocabulary.
std::string bos_outside(std::string_view key, std::string_view id, std::int64_t vocabulary);

/// The activation with this name; empty if it is not known.
std::optional<Activation> activation_named(std::string_view name);

/// The one of two names of a key that the file has; the first name if it has neither.
/// @throws InvalidArgument  the file has both, with different values
std::string_view either(ConfigReader& reader, std::string_view first, std::string_view second);

/// Checks a key that a family accepts with one value only, e.g. `use_mrope: false`.
/// @param required  JSON value; absent and null are accepted too
/// @throws InvalidArgument  another value (the message says why)
void require_value(ConfigReader& reader, std::string_view key, const Json& required, std::string_view why);

/// A positive number, e.g. a soft cap. Null means none. Returns 0 for none.
/// @param fallback  used if the key is absent; empty: none
/// @throws InvalidArgument  not a positive number
double parse_optional_positive(ConfigReader& reader, std::string_view key, std::optional<double> fallback);

/// In GGUF files of families that add 1 to the weights of norms, the sum is stored: 0. No config.json has this key.
inline constexpr const char* norm_offset_key = "gainlens_norm_offset";

/// What such a family adds to the weights of norms: 1, or what a GGUF file needs.
double parse_norm_offset(ConfigReader& reader);

/// Windows by `layer_types`, [layer]: 0 for "full_attention", `window` for "sliding_attention". Empty if the file does
/// not have this key.
/// @param window    0: there is none
/// @param why_none  then, the reason for messages
/// @throws InvalidArgument  layer_types has the wrong length or another name; a sliding layer has no window
std::vector<std::int64_t> windows_by_type(ConfigReader& reader, std::int64_t layers, std::int64_t window,
                                          const std::string& why_none);

/// Windows of the families with `use_sliding_window`, `sliding_window`, `max_window_layers` and `layer_types`: [layer],
/// 0 for global layers.
///
/// Without layer_types, the layers from max_window_layers on have the window. A query t sees keys j with t - j <
/// window.
/// @throws InvalidArgument  layer_types has the wrong length or another name; a sliding layer has no window
std::vector<std::int64_t> parse_layer_windows(ConfigReader& reader, std::int64_t layers);

/// Windows of the families in which global layers alternate with layers with a window. They are given by `layer_types`.
/// Without it, every layer has the window except each `pattern`-th.
/// @param pattern   a global layer follows `pattern` - 1 layers with a window
/// @param fallback  the window if `sliding_window` is absent
/// @throws InvalidArgument  as parse_layer_windows
std::vector<std::int64_t> parse_alternating_windows(ConfigReader& reader, std::int64_t layers, std::int64_t pattern,
                                                    std::int64_t fallback);

/// `sliding_window_pattern`. Of files with `_sliding_window_pattern` the reference writes that key, and does not read
/// it.
/// @param fallback  used if the key is absent
/// @throws InvalidArgument  `_sliding_window_pattern` is another number, and no `layer_types` list the layers
std::int64_t parse_window_pattern(ConfigReader& reader, std::int64_t fallback);

/// `sliding_window`: number of visible keys, including the query itself; 0 (global) if null.
/// @param fallback  used if the key is absent
std::int64_t parse_window(ConfigReader& reader, std::int64_t fallback);

}  // namespace gainlens::models
