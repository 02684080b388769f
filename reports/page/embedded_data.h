#pragma once

#include "core/json.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::reports {

/// Bytes as base64 with padding (RFC 4648, section 4), without line breaks.
std::string base64(std::string_view bytes);

/// What a part of the page's script works with: words, and numbers that words name by the place of the first of them.
struct EmbeddedData {
  OrderedJson words = OrderedJson::object();
  std::vector<float> numbers;

  /// Adds numbers, rounded to float32.
  /// @returns the place of the first of them in `numbers`
  std::size_t add(std::span<const double> values);
};

/// An empty, hidden element that the page's script fills, with its data. The data are zlib's deflate in base64: the
/// length of the JSON as 4 bytes (little-endian), the JSON, then the numbers as float32, all first bytes of theirs
/// before all second ones, which are alike. No browser takes them for a script or for markup, and text that is no UTF-8
/// gets replacement characters.
/// @param part  "explore": the heads of runs (reports/sweep/explore_section.cpp, page/script/explore.js);
///     "effects": maps of effects (reports/effect_explorer.h); "tokens": the attention of single queries
///     (page/token_strip.h)
std::string embedded_part(std::string_view part, const EmbeddedData& data);

}  // namespace gainlens::reports
