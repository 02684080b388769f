#pragma once

#include "core/head_queries.h"

#include <fmt/format.h>

#include <cmath>
#include <span>
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

/// A token that a model has added to a text.
struct AddedToken {
  std::string text;  ///< of the vocabulary, not safe to print; or its id where there is no tokenizer
  double log_probability = 0;
};

/// A row for each new token: its ln p, and of the query that it comes from the means over all heads, with a strip of
/// bars by layer. Queries that see no key are left out of the means.
/// @param heads  layer by layer, with a query for each token; at least one head
std::string print_token_statistics(std::span<const AddedToken> tokens, std::span<const HeadQueries> heads);

/// The same for programs: "[{"layer": l, "head": h, "n_eff": [of each token], ..}, ..]" (docs/generate.md).
std::string token_statistics_json(std::span<const HeadQueries> heads);

}  // namespace gainlens::reports
