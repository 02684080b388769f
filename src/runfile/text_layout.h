#pragma once

#include "runfile/request.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace gainlens::runfile {

/// Tokens [begin, end) of the tokenised text. A BOS at the start of a chunk is not a token of the text.
struct TextSpan {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(const TextSpan&) const = default;
};

/// What decides where the chunks of a run lie in its text. A chunk of length T has s text tokens: s = T, or T - 1 with
/// a BOS. The text tokens of chunk c are
/// - consecutive (default): [c s, c s + s), from the start of the text on
/// - spread: [b, b + s) with b = m - floor(s/2) and m = floor((2c + 1) N / (2 samples)). This is the middle of the c-th
///   of `samples` equal parts of the N tokens of the text.
/// - nested: the first s tokens of chunk c of the longest length, which is consecutive or spread
///
/// Chunks of one length never overlap. Chunks of different lengths share text in every layout. Spread or nested: chunk
/// c of a shorter length lies within chunk c of each longer one. Consecutive: chunk 0 of 8k holds chunks 0 and 1 of 4k.
/// Source: docs/method.md, "Sweep protocol".
struct TextLayout {
  std::vector<std::int64_t> lengths;   ///< context lengths T, sorted
  std::int64_t samples = 1;            ///< chunks per length
  bool nested = false;                 ///< shorter chunks are the starts of the longest ones
  std::optional<std::int64_t> spread;  ///< tokens of the text that the chunks are spread over; absent: consecutive
  bool bos = false;                    ///< a BOS takes position 0 of every chunk
};

TextLayout layout_of(const Request& request);

/// Tokens of text that the chunks of this length need.
/// @throws InvalidArgument  a number beyond 64 bits
std::int64_t tokens_needed(const TextLayout& layout, std::int64_t length);

/// Where a chunk lies. Requires one of the layout's lengths, 0 <= sample < samples, and a text of at least
/// tokens_needed().
TextSpan text_span(const TextLayout& layout, std::int64_t length, std::int64_t sample);

}  // namespace gainlens::runfile
