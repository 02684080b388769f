#include "tokenizers/text_encoder.h"

#include "core/available_memory.h"
#include "core/check.h"
#include "core/quantity.h"
#include "tokenizers/code_points.h"

#include <algorithm>
#include <utility>

namespace gainlens::tokenizers {
namespace {

/// Bytes of memory that encoding takes for each byte of a text at once, measured on one line of 8 MB. SentencePiece
/// takes most.
constexpr std::uint64_t memory_per_byte = 260;
/// Below this size no machine is asked.
constexpr std::size_t never_too_large = std::size_t{4} << 20;

}  // namespace

TextEncoder::TextEncoder(const Tokenizer& tokenizer, Options options)
    : tokenizer_(tokenizer), options_(std::move(options)), want_(options_.part) {}

void TextEncoder::add(std::string_view text) {
  // A long part is taken in pieces, so that no more than one of them waits here.
  while (!text.empty() && !has_enough()) {
    std::size_t length = std::min(text.size(), options_.part);
    while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) ++length;
    text_ += text.substr(0, length);
    text.remove_prefix(length);
    check_memory();
    if (text_.size() - begin_ > want_) encode_what_is_certain();
  }
}

bool TextEncoder::finish() {
  if (has_enough()) return false;  // a cut lies before the end of the text, so some of it is not encoded
  encode_to(text_.size());
  return true;
}

void TextEncoder::encode_what_is_certain() {
  // If the text cannot be continued at a cut, its start would be encoded again and again. So it waits for its end,
  // unless a start may be enough.
  const std::size_t cut =
      tokenizer_.continues_at_cuts() || options_.enough ? tokenizer_.last_cut(text_, begin_) : begin_;
  if (cut == begin_) {
    want_ = 2 * (text_.size() - begin_);
    return;
  }
  encode_to(cut);
  if (!tokenizer_.continues_at_cuts()) {
    want_ = 2 * text_.size();
    return;
  }
  const std::size_t kept = start_of_last(text_, cut);
  text_.erase(0, kept);
  begin_ = cut - kept;
  want_ = options_.part;
}

void TextEncoder::encode_to(std::size_t end) {
  if (!tokenizer_.continues_at_cuts()) {
    blocks_.clear();
    size_ = 0;
  }
  blocks_.push_back(tokenizer_.encode_from(std::string_view(text_).substr(0, end), begin_));
  blocks_.back().shrink_to_fit();
  size_ += blocks_.back().size();
}

void TextEncoder::check_memory() const {
  const std::size_t waiting = text_.size() - begin_;
  if (waiting < never_too_large) return;
  const auto available = available_memory();
  const std::uint64_t needed = memory_per_byte * waiting;
  CHECK(
      !available || needed <= *available,
      "{}: {} of text without a place where this tokenizer certainly ends a token; to encode it at once takes about {} "
      "of memory, and {} are available; give a text with shorter words, or ids with --tokens FILE.json",
      options_.where, format_bytes(waiting), format_bytes(needed), format_bytes(*available));
}

std::vector<TokenId> TextEncoder::take() {
  std::vector<TokenId> ids;
  if (blocks_.size() == 1) {
    ids = std::move(blocks_.front());
  } else {
    ids.reserve(size_);
    for (std::vector<TokenId>& block : blocks_) {
      ids.insert(ids.end(), block.begin(), block.end());
      block = {};  // so that the ids are never here twice
    }
  }
  blocks_.clear();
  size_ = 0;
  return ids;
}

std::vector<TokenId> encode_in_parts(const Tokenizer& tokenizer, std::string_view text, std::string where) {
  TextEncoder encoder(tokenizer, {.where = std::move(where), .enough = {}});
  encoder.add(text);
  encoder.finish();
  return encoder.take();
}

}  // namespace gainlens::tokenizers
