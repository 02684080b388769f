#pragma once

#include "models/config_reader.h"
#include "models/decoder_config.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace gainlens::models {

/// What a family takes where its config.json is silent. Sizes have no defaults: a file without them is refused.
struct CommonDefaults {
  std::int64_t max_positions = 0;
  std::optional<std::int64_t> kv_heads;  ///< empty: as many as heads, as where the key is null
  std::optional<std::int64_t> head_dim;  ///< empty: width / heads
  std::optional<std::int64_t> bos_token;
};

/// The keys all families share: sizes, activation, norm epsilon, tied head, RoPE, BOS, window of 0 everywhere; and those that are only
/// accepted at the one value a Decoder computes (pretraining_tp, quantization_config, ...).
///
/// bos_token_id may be an integer, a list (its first is taken), or null. `dtype` and `torch_dtype` must agree where both are given;
/// neither decides the compute dtype.
///
/// @throws InvalidArgument  as ConfigReader; heads not a multiple of kv_heads; width not a multiple of heads where head_dim is not given;
/// an
///                          odd head_dim; an activation that is not silu or a gelu; a BOS outside the vocabulary
DecoderConfig parse_common(ConfigReader& reader, const CommonDefaults& defaults);

/// The keys that only let a family through at one value, e.g. `use_mrope: false`.
/// @param required  JSON value; absent and null pass too
/// @throws InvalidArgument  another value (says why)
void require_value(ConfigReader& reader, std::string_view key, const Json& required, std::string_view why);

/// Windows of the families with `use_sliding_window`, `sliding_window`, `max_window_layers` and `layer_types`: [layer], 0 for global.
///
/// Without layer_types, layers from max_window_layers on have the window. A query t sees keys j with t - j < window.
/// @throws InvalidArgument  layer_types of the wrong length or with another name; a sliding layer without a window
std::vector<std::int64_t> parse_layer_windows(ConfigReader& reader, std::int64_t layers);

/// `sliding_window`: visible keys including the query itself; 0 (global) where null.
std::int64_t parse_window(ConfigReader& reader, std::int64_t fallback);

}  // namespace gainlens::models
