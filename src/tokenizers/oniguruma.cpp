#include "tokenizers/oniguruma.h"

#include "core/error.h"

#include <cctype>

namespace gainlens::tokenizers {
namespace {

// Insides of character classes. White space is Unicode's White_Space. It is written out together with its complement,
// because \S may stand inside a class.
constexpr std::string_view space =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view not_space =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})"
    R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
constexpr std::string_view word = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
constexpr std::string_view hexadecimal = "0-9A-Fa-f";

class Translation {
 public:
  Translation(std::string_view pattern, std::string_view where, const std::function<bool(std::string_view)>& is_script)
      : pattern_(pattern), where_(where), is_script_(is_script) {}

  std::string run() {
    while (position_ < pattern_.size()) {
      if (inside_class_) {
        class_part();
      } else {
        plain_part();
      }
    }
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw_invalid(
        "{}: {} in the pattern '{}' is not supported; make the ids with the model's own software and give them with "
        "--tokens FILE.json",
        where_, what, printable(pattern_));
  }

  bool ahead(std::string_view text) const { return pattern_.substr(position_).starts_with(text); }
  void copy(std::size_t count) {
    result_ += pattern_.substr(position_, count);
    position_ += count;
  }

  void plain_part() {
    const char sign = pattern_[position_];
    if (sign == '\\') return escape();
    if (sign == '{') return interval();
    if (ahead("(?")) return group();
    if (sign == '[') {
      inside_class_ = true;
      copy(ahead("[^]") ? 3 : ahead("[^") || ahead("[]") ? 2 : 1);  // a ']' in first place is a plain character
      return;
    }
    copy(1);
  }

  void class_part() {
    const char sign = pattern_[position_];
    if (sign == '\\') return escape();
    if (sign == '[') refuse("a set inside a set");
    if (ahead("&&")) refuse("an intersection of sets (&&)");
    if (sign == ']') inside_class_ = false;
    copy(1);
  }

  void group() {
    for (const std::string_view opening : {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:"}) {
      if (ahead(opening)) return copy(opening.size());
    }
    // In the middle of a pattern, Ruby's (?i) would also enclose the branches that follow.
    if (ahead("(?i)") && position_ == 0) return copy(4);
    refuse(fmt::format("'{}'", printable(pattern_.substr(position_, 4))));
  }

  void interval() {
    const auto close = pattern_.find('}', position_);
    const bool counts = close != std::string_view::npos && close > position_ + 1 &&
                        pattern_.substr(position_ + 1, close - position_ - 1).find_first_not_of("0123456789,") ==
                            std::string_view::npos;
    if (!counts) return copy(1);
    if (ahead("{,")) refuse("an interval without a lower bound");
    if (close + 1 < pattern_.size() && pattern_[close + 1] == '+') refuse("'+' after an interval");
    copy(close + 1 - position_);
  }

  void escape() {
    if (position_ + 1 >= pattern_.size()) refuse("a backslash at the end");
    const char sign = pattern_[position_ + 1];
    switch (sign) {
      case 's':
        return write_class(space, false);
      case 'S':
        return inside_class_ ? write_class(not_space, false) : write_class(space, true);
      case 'w':
        return write_class(word, false);
      case 'W':
        return write_class(word, true);
      case 'd':
        return write_class(R"(\p{Nd})", false);
      case 'D':
        return write_class(inside_class_ ? R"(\P{Nd})" : R"(\p{Nd})", !inside_class_);
      case 'h':
        return write_class(hexadecimal, false);
      case 'H':
        return write_class(hexadecimal, true);
      case 'v':
        return write(R"(\x{b})", 2);
      case 'p':
      case 'P':
        return property();
      case 'u':
        return code_point(4);
      case 'x':
        return ahead("\\x{") ? copy(3) : code_point(2);
      case 't':
      case 'n':
      case 'r':
      case 'f':
      case 'a':
      case 'e':
        return copy(2);
      case 'A':
      case 'z':
      case 'Z':
        if (!inside_class_) return copy(2);
        [[fallthrough]];
      default:
        if (std::isalnum(static_cast<unsigned char>(sign)) != 0) refuse(fmt::format("'\\{}'", sign));
        copy(2);
    }
  }

  void write(std::string_view text, std::size_t consumed) {
    result_ += text;
    position_ += consumed;
  }

  void write_class(std::string_view inside, bool negated) {
    if (inside_class_ && negated) refuse(fmt::format("'{}' inside a set", pattern_.substr(position_, 2)));
    if (inside_class_) return write(inside, 2);
    write(fmt::format("[{}{}]", negated ? "^" : "", inside), 2);
  }

  /// \uHHHH or \xHH. The latter is a byte in Oniguruma, so only ASCII is unambiguous.
  void code_point(std::size_t digits) {
    const std::string_view number = pattern_.substr(position_ + 2, digits);
    if (number.size() != digits || number.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
      refuse("an escape without its digits");
    if (digits == 2 && number.front() > '7') refuse("a byte above 0x7F");
    write(fmt::format("\\x{{{}}}", number), 2 + digits);
  }

  void property() {
    const auto close = pattern_.find('}', position_);
    if (position_ + 2 >= pattern_.size() || pattern_[position_ + 2] != '{' || close == std::string_view::npos)
      refuse("a property without braces");
    std::string_view name = pattern_.substr(position_ + 3, close - position_ - 3);
    const bool inverted = name.starts_with('^');
    if (inverted) name.remove_prefix(1);
    write(fmt::format("\\{}{{{}{}{}}}", pattern_[position_ + 1], inverted ? "^" : "", is_script_(name) ? "sc:" : "",
                      name),
          close + 1 - position_);
  }

  std::string_view pattern_;
  std::string_view where_;
  const std::function<bool(std::string_view)>& is_script_;
  std::size_t position_ = 0;
  bool inside_class_ = false;
  std::string result_;
};

}  // namespace

std::string pcre2_from_oniguruma(std::string_view pattern, std::string_view where,
                                 const std::function<bool(std::string_view)>& is_script) {
  return Translation(pattern, where, is_script).run();
}

}  // namespace gainlens::tokenizers
