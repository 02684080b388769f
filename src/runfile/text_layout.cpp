#include "runfile/text_layout.h"

#include "core/check.h"
#include "core/checked.h"

namespace gainlens::runfile {
namespace {

/// Tokens of text in a chunk.
std::int64_t text_tokens(const TextLayout& layout, std::int64_t length) {
  return length - (layout.bos ? 1 : 0);
}

/// The length whose chunks decide where the chunks of `length` begin.
std::int64_t placed_length(const TextLayout& layout, std::int64_t length) {
  return layout.nested ? layout.lengths.back() : length;
}

}  // namespace

TextLayout layout_of(const Request& request) {
  return {request.lengths, request.samples, request.nested, request.spread, request.bos.has_value()};
}

std::int64_t tokens_needed(const TextLayout& layout, std::int64_t length) {
  const char* what = "chunks: samples x length";
  const std::int64_t stride = text_tokens(layout, placed_length(layout, length));
  if (!layout.spread)
    return checked_add(checked_mul(layout.samples - 1, stride, what), text_tokens(layout, length), "chunks: tokens");
  checked_mul(checked_mul(std::int64_t{2}, layout.samples, what), *layout.spread,
              "chunks: samples x tokens of the text");  // text_span() computes this product
  return checked_mul(layout.samples, stride, what);
}

TextSpan text_span(const TextLayout& layout, std::int64_t length, std::int64_t sample) {
  ASSERT(0 <= sample && sample < layout.samples, "chunk {} of {}", sample, layout.samples);
  const std::int64_t stride = text_tokens(layout, placed_length(layout, length));
  const std::int64_t begin =
      layout.spread ? (2 * sample + 1) * *layout.spread / (2 * layout.samples) - stride / 2 : sample * stride;
  return {begin, begin + text_tokens(layout, length)};
}

}  // namespace gainlens::runfile
