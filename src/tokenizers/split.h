#pragma once

#include "tokenizers/pattern.h"

#include <vector>

namespace gainlens::tokenizers {

/// What happens to the matches of a pattern that cuts a text.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// @throws InvalidArgument  not the name of a behaviour as tokenizer.json writes it
SplitBehavior read_split_behavior(const JsonNode& node);

/// Makes pieces from the spans of Pattern::spans, which cover the text. Matches are dropped (removed), are pieces of
/// their own (isolated), or are joined to the part before or after them (but not to another match). `contiguous` makes
/// a piece of each run of matches and of each run of other parts.
std::vector<Span> split_spans(std::vector<Span> spans, SplitBehavior behavior);

}  // namespace gainlens::tokenizers
