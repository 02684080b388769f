#include "analyses/token_class.h"

#include "core/check.h"
#include "core/utf8.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gainlens::analyses {
namespace {

/// @param text  valid UTF-8
std::vector<char32_t> characters(std::string_view text) {
  std::vector<char32_t> all;
  for (const char byte : text) {
    const auto bits = static_cast<unsigned char>(byte);
    if ((bits & 0xC0) == 0x80) {
      all.back() = all.back() << 6 | (bits & 0x3F);
    } else {
      all.push_back(bits < 0x80 ? bits : bits < 0xE0 ? bits & 0x1F : bits < 0xF0 ? bits & 0x0F : bits & 0x07);
    }
  }
  return all;
}

bool is_break(char32_t c) {
  return (c >= U'\n' && c <= U'\r') || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_space(char32_t c) {
  return is_break(c) || c == U' ' || c == U'\t' || c == 0x2581 || c == 0xA0 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x202F || c == 0x3000;
}

bool is_punctuation(char32_t c) {
  return (c >= U'!' && c <= U'/') || (c >= U':' && c <= U'@') || (c >= U'[' && c <= U'`') || (c >= U'{' && c <= U'~') ||
         c == 0xA1 || c == 0xA7 || c == 0xAB || c == 0xB6 || c == 0xB7 || c == 0xBB || c == 0xBF ||
         (c >= 0x2010 && c <= 0x2027) || (c >= 0x2030 && c <= 0x205E) || (c >= 0x3001 && c <= 0x3003) ||
         (c >= 0x3008 && c <= 0x3011) || (c >= 0xFF01 && c <= 0xFF0F) || (c >= 0xFF1A && c <= 0xFF20);
}

bool is_digit(char32_t c) {
  return (c >= U'0' && c <= U'9') || (c >= 0xFF10 && c <= 0xFF19);
}

/// "</s>", "<|endoftext|>", "<eos>"; not a byte such as "<0xE2>".
bool is_special(const std::vector<char32_t>& text) {
  return text.size() > 2 && text.front() == U'<' && text.back() == U'>' &&
         std::count(text.begin(), text.end(), U'<') == 1 && std::count(text.begin(), text.end(), U'>') == 1 &&
         !(text[1] == U'0' && text[2] == U'x') && std::none_of(text.begin(), text.end(), is_space);
}

}  // namespace

std::string_view name_of(TokenClass token_class) {
  switch (token_class) {
    case TokenClass::bos:
      return "BOS";
    case TokenClass::delimiter:
      return "delimiter";
    case TokenClass::newline:
      return "newline";
    case TokenClass::space:
      return "space";
    case TokenClass::digit:
      return "digit";
    case TokenClass::rare:
      return "rare";
    case TokenClass::common:
      return "common";
  }
  ASSERT(false, "class {} of tokens is not one of ours", static_cast<int>(token_class));
}

TokenClass class_of_text(std::string_view text) {
  if (text.empty() || first_invalid_utf8(text)) return TokenClass::common;
  std::vector<char32_t> rest = characters(text);
  if (std::all_of(rest.begin(), rest.end(), is_space))
    return std::any_of(rest.begin(), rest.end(), is_break) ? TokenClass::newline : TokenClass::space;
  while (is_space(rest.back())) rest.pop_back();
  rest.erase(rest.begin(), std::find_if_not(rest.begin(), rest.end(), is_space));
  if (is_special(rest) || std::all_of(rest.begin(), rest.end(), is_punctuation)) return TokenClass::delimiter;
  return std::all_of(rest.begin(), rest.end(), is_digit) ? TokenClass::digit : TokenClass::common;
}

}  // namespace gainlens::analyses
