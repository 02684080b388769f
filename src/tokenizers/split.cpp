#include "tokenizers/split.h"

#include "core/check.h"

#include <algorithm>

namespace gainlens::tokenizers {
namespace {

/// Joins spans to pieces. A span goes to the piece before it if joins(a, b) is true, where a says whether the span is a
/// match of the pattern, and b whether the span before it is one.
template <typename Joins>
std::vector<Span> join(const std::vector<Span>& spans, Joins&& joins) {
  std::vector<Span> pieces;
  bool previous_matched = false;
  for (const Span& span : spans) {
    if (!pieces.empty() && joins(span.matched, previous_matched)) {
      pieces.back() = {std::min(pieces.back().begin, span.begin), std::max(pieces.back().end, span.end), false};
    } else {
      pieces.push_back(span);
    }
    previous_matched = span.matched;
  }
  return pieces;
}

bool match_behind_other(bool matched, bool previous_matched) {
  return matched && !previous_matched;
}

}  // namespace

SplitBehavior read_split_behavior(const JsonNode& node) {
  const std::string name = node.text();
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  node.unsupported(fmt::format("behaviour '{}'", printable(name)));
}

std::vector<Span> split_spans(std::vector<Span> spans, SplitBehavior behavior) {
  switch (behavior) {
    case SplitBehavior::isolated:
      return spans;
    case SplitBehavior::removed:
      std::erase_if(spans, [](const Span& span) { return span.matched; });
      return spans;
    case SplitBehavior::contiguous:
      return join(spans, [](bool matched, bool previous_matched) { return matched == previous_matched; });
    case SplitBehavior::merged_with_previous:
      return join(spans, match_behind_other);
    case SplitBehavior::merged_with_next: {
      std::reverse(spans.begin(), spans.end());
      auto pieces = join(spans, match_behind_other);
      std::reverse(pieces.begin(), pieces.end());
      return pieces;
    }
  }
  ASSERT(false, "split behaviour {}", static_cast<int>(behavior));
}

}  // namespace gainlens::tokenizers
