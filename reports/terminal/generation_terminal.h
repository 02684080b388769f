#pragma once

#include "core/head_queries.h"

#include <span>
#include <string>
#include <vector>

namespace gainlens::reports {

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
