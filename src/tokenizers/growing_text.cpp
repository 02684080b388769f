#include "tokenizers/growing_text.h"

#include "tokenizers/readable.h"

#include <algorithm>
#include <utility>

namespace gainlens::tokenizers {
namespace {

/// Bytes of the character that a first byte begins; 1 for any other byte.
std::size_t bytes_of_character(unsigned char first) {
  if (first >= 0xF0) return 4;
  if (first >= 0xE0) return 3;
  return first >= 0xC0 ? 2 : 1;
}

/// Where the last character begins, if bytes of it may be missing; else the end. A first byte never continues another
/// character, so the text can be cut before it.
std::size_t end_of_whole_characters(std::string_view bytes) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, bytes.size()); ++back) {
    const std::size_t at = bytes.size() - back;
    const std::size_t whole = bytes_of_character(static_cast<unsigned char>(bytes[at]));
    if (whole > 1) return whole > back ? at : bytes.size();
  }
  return bytes.size();
}

}  // namespace

std::string GrowingText::add(TokenId id) {
  waiting_ += tokenizer_.token_bytes(id);
  const std::size_t end = end_of_whole_characters(waiting_);
  std::string text = readable(std::string_view(waiting_).substr(0, end));
  waiting_.erase(0, end);
  return text;
}

std::string GrowingText::finish() {
  return readable(std::exchange(waiting_, {}));
}

}  // namespace gainlens::tokenizers
