#pragma once

#include "core/head_queries.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::reports {

/// A number of JSON; null for NaN. The shortest text that reads as the same number.
template <typename Number>
std::string json_number(Number value) {
  return std::isfinite(value) ? fmt::format("{}", value) : std::string("null");
}

template <typename Number>
std::string json_list(const std::vector<Number>& values) {
  std::string text = "[";
  for (const Number value : values) text += (text.size() == 1 ? "" : ",") + json_number(value);
  return text + ']';
}

/// The members of an object of JSON that describe a head and its queries, without braces: "\"layer\":0,\"head\":1,..".
std::string json_members(const HeadQueries& head);

/// A bar as high as this share of a full one; a blank below a sixteenth.
/// @param share  between 0 and 1; NaN is blank
std::string_view bar(double share);

}  // namespace gainlens::reports
