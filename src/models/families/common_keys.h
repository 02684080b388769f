#pragma once

#include "models/decoder/decoder_config.h"
#include "models/families/config_reader.h"
#include "models/families/rope_config.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace gainlens::models {

/// What a family calls the keys all decoders have.
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

/// What a family takes where its config.json is silent. Sizes have no defaults, but for those below: a file without
/// them is refused.
struct CommonDefaults {
  std::int64_t max_positions = 0;
  std::optional<std::int64_t> kv_heads;  ///< empty: as many as heads, as where the key is null
  std::optional<std::int64_t> head_dim;  ///< empty: width / heads
  std::optional<std::int64_t> bos_token;
  std::optional<std::int64_t> heads;
  std::optional<std::int64_t> vocabulary;
  double norm_epsilon = 1e-6;
  Activation activation = Activation::silu;
  bool tied_head = false;
  std::optional<std::int64_t>
      mlp_ratio;  ///< mlp_width / width where the key is absent or null; empty: it must be there
  Positions positions = Positions::rotary;
  bool tensor_parallel_inert = false;  ///< pretraining_tp says nothing about what is computed
};

/// The keys all families share: sizes, activation, norm epsilon, tied head, RoPE, BOS, window of 0 everywhere; and
/// those that are only accepted at the one value a Decoder computes (pretraining_tp, quantization_config, ...).
///
/// bos_token_id may be an integer, a list (its first is taken), or null. `dtype` and `torch_dtype` must agree where
/// both are given; neither decides the compute dtype.
///
/// @throws InvalidArgument  as ConfigReader; heads not a multiple of kv_heads; width not a multiple of heads where
///                          head_dim is not given; an odd rotated part of a head; an activation that is none of silu,
///                          the gelus and relu; a BOS outside the vocabulary
DecoderConfig parse_common(ConfigReader& reader, const CommonDefaults& defaults, const CommonKeys& keys = {});

/// The one of two names of a key that the file has; the first where it has neither.
/// @throws InvalidArgument  it has both, with different values
std::string_view either(ConfigReader& reader, std::string_view first, std::string_view second);

/// The keys that only let a family through at one value, e.g. `use_mrope: false`.
/// @param required  JSON value; absent and null pass too
/// @throws InvalidArgument  another value (says why)
void require_value(ConfigReader& reader, std::string_view key, const Json& required, std::string_view why);

/// A number that may be null or absent, for none: a soft cap. 0 for none.
/// @throws InvalidArgument  not a positive number
double parse_optional_positive(ConfigReader& reader, std::string_view key, std::optional<double> fallback);

/// Windows of the families with `use_sliding_window`, `sliding_window`, `max_window_layers` and `layer_types`: [layer],
/// 0 for global.
///
/// Without layer_types, layers from max_window_layers on have the window. A query t sees keys j with t - j < window.
/// @throws InvalidArgument  layer_types of the wrong length or with another name; a sliding layer without a window
std::vector<std::int64_t> parse_layer_windows(ConfigReader& reader, std::int64_t layers);

/// Windows of the families whose layers take turns: `layer_types`, or without it every layer but each `pattern`-th has
/// the window.
/// @param pattern   a global layer comes after so many less one with a window
/// @param fallback  the window where `sliding_window` is absent
/// @throws InvalidArgument  as parse_layer_windows
std::vector<std::int64_t> parse_alternating_windows(ConfigReader& reader, std::int64_t layers, std::int64_t pattern,
                                                    std::int64_t fallback);

/// `sliding_window`: visible keys including the query itself; 0 (global) where null.
std::int64_t parse_window(ConfigReader& reader, std::int64_t fallback);

}  // namespace gainlens::models
