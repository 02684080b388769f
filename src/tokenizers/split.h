#pragma once

#include "tokenizers/pattern.h"

#include <vector>

namespace gainlens::tokenizers {

/// What becomes of the matches of a pattern that cuts a text.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// @throws InvalidArgument  not the name of a behaviour as tokenizer.json writes it
SplitBehavior read_split_behavior(const JsonNode& node);

/// The pieces, from the covering spans of Pattern::spans: matches dropped, alone, joined to a neighbour (a match that
/// follows a match starts a piece of its own), or runs of matches and of non-matches.
std::vector<Span> split_spans(std::vector<Span> spans, SplitBehavior behavior);

}  // namespace gainlens::tokenizers
