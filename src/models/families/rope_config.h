#pragma once

#include "models/decoder/decoder_config.h"
#include "models/families/config_reader.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace gainlens::models {

/// What a family calls the keys of its rotary embedding, and what it takes where they are silent.
struct RopeKeys {
  std::string_view base = "rope_theta";
  std::string_view rotated;      ///< share of a head that is rotated; empty: the family only rotates whole heads
  bool by_window = false;        ///< layers with a window may have an embedding of their own
  std::string_view window_base;  ///< of layers with a window, which then have neither scaling; empty: no such key
  double default_base = 10000;
  double default_rotated = 1;
  std::optional<double> default_window_base;
};

/// Rotary embeddings of a checkpoint.
struct Ropes {
  RopeConfig rope;
  std::optional<RopeConfig> window;  ///< of the layers with a window, where it differs
};

/// Reads `rope_theta` with `rope_scaling`, and `rope_parameters`, flat or one object per layer type. What is given
/// twice must agree. Scalings: default, linear, llama3, yarn, longrope (also called su).
///
/// Defaults are those of Hugging Face transformers: original_max_position_embeddings falls back to the file's, else to
/// max_positions; a yarn factor to max_positions / original; yarn's attention factor to m(s, mscale) / m(s,
/// mscale_all_dim), or m(s, 1) where either is absent or 0, with m(s, a) = 0.1 a ln(s) + 1; longrope's to sqrt(1 +
/// ln(s) / ln(original)), s the factor or max_positions / original.
///
/// @param max_positions  of the config
/// @throws InvalidArgument  an unknown scaling type or key, a number out of range, objects that disagree
Ropes parse_ropes(ConfigReader& reader, std::int64_t max_positions, const RopeKeys& keys = {});

}  // namespace gainlens::models
