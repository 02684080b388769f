#pragma once

#include "models/decoder/decoder_config.h"
#include "models/families/config_reader.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace gainlens::models {

/// The names that a family uses for the keys of its rotary embedding, and the values if they are absent.
struct RopeKeys {
  std::string_view base = "rope_theta";
  std::string_view rotated;  ///< share of a head that is rotated; empty: the family only rotates whole heads
  bool by_window = false;    ///< layers with a window may have an embedding of their own
  /// Key of the base of layers with a window, which then do not use `rope_scaling`; empty: no such key.
  std::string_view window_base;
  bool alpha_stretches = false;  ///< the scaling "dynamic" has a fixed `alpha`, which stretches the base
  /// `mrope_section` and `mrope_interleaved` may say which pairs follow the time, height and width of an image. Text
  /// has the same position in all three, so they change nothing.
  bool sections = false;
  bool yarn_is_longrope = false;  ///< "yarn" is an early name of "longrope" in the files of this family
  /// `original_max_position_embeddings` outside of the objects, if the file does not have it there.
  std::optional<std::int64_t> default_original = std::nullopt;
  double default_base = 10000;
  double default_rotated = 1;
  std::optional<double> default_window_base;
};

/// Rotary embeddings of a checkpoint.
struct Ropes {
  RopeConfig rope;
  std::optional<RopeConfig> window;  ///< of the layers with a window, if it differs
};

/// Reads `rope_theta` with `rope_scaling`, and `rope_parameters`, which is flat or, in families with `by_window`, has
/// one object for each layer type. Values that are given twice must agree. Scalings: default, linear, llama3, yarn,
/// longrope (also called su), proportional.
///
/// Defaults are those of Hugging Face transformers, with s the factor or max_positions / original, and m(s, a) = 0.1 a
/// ln(s) + 1:
/// - original_max_position_embeddings: the key outside of the objects, else that of the object, else max_positions.
///   Transformers 4.57 and 5 differ where both stand there, except for longrope: such files are refused
/// - factor of yarn: max_positions / original
/// - attention factor of yarn: m(s, mscale) / m(s, mscale_all_dim), or m(s, 1) if either is absent or 0
/// - attention factor of longrope: sqrt(1 + ln(s) / ln(original))
///
/// @param max_positions  from the configuration
/// @throws InvalidArgument  a scaling type or key is unknown; a number is out of range; objects disagree; versions of
///     the reference read different values
Ropes parse_ropes(ConfigReader& reader, std::int64_t max_positions, const RopeKeys& keys = {});

}  // namespace gainlens::models
