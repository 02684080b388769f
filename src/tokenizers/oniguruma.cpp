#include "tokenizers/oniguruma.h"

#include "core/error.h"
#include "tokenizers/code_points.h"

#include <fmt/ranges.h>

#include <cctype>
#include <utility>
#include <vector>

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

/// A class with operations on sets: the intersection of its operands, or all other characters.
struct Set {
  struct Operand {
    std::string members;              ///< the inside of a PCRE2 class
    std::vector<std::string> nested;  ///< patterns of one character each, for the sets that `members` cannot hold
  };
  std::vector<Operand> operands{Operand{}};
  bool negated = false;

  bool is_plain() const { return operands.size() == 1 && operands.front().nested.empty(); }
};

/// A pattern of one character of the operand.
std::string pattern_of(const Set::Operand& operand) {
  if (operand.nested.empty()) return fmt::format("[{}]", operand.members);
  std::string branches;
  if (!operand.members.empty()) branches = fmt::format("[{}]|", operand.members);
  return fmt::format("(?:{}{})", branches, fmt::join(operand.nested, "|"));
}

/// A pattern of one character of the set. PCRE2 before 10.45 has no operations on sets, so lookaheads take their place.
std::string pattern_of(const Set& set) {
  if (set.is_plain()) return fmt::format("[{}{}]", set.negated ? "^" : "", set.operands.front().members);
  std::string all;
  for (std::size_t i = 0; i + 1 < set.operands.size(); ++i) all += fmt::format("(?={})", pattern_of(set.operands[i]));
  all += pattern_of(set.operands.back());
  return set.negated ? fmt::format("(?:(?!{})(?s:.))", all) : fmt::format("(?:{})", all);
}

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
    if (sign == '(') {
      ignores_case_.push_back(ignores_case_.back());
      if (ahead("(?")) return group();
    }
    if (sign == ')' && ignores_case_.size() > 1) ignores_case_.pop_back();
    if (sign == '[' && has_set_operations()) return write_set();
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
    if (sign == ']') inside_class_ = false;
    copy(1);
  }

  /// Whether the class that begins here holds another class or an intersection.
  bool has_set_operations() const {
    std::size_t place = position_ + (ahead("[^]") ? 3 : ahead("[^") || ahead("[]") ? 2 : 1);
    for (; place < pattern_.size() && pattern_[place] != ']'; ++place) {
      if (pattern_[place] == '\\') {
        ++place;
      } else if (pattern_[place] == '[' || pattern_.substr(place).starts_with("&&")) {
        return true;
      }
    }
    return false;
  }

  void write_set() {
    inside_class_ = true;
    const Set set = read_set(0);
    inside_class_ = false;
    // Oniguruma folds the case of the members before it intersects and negates, PCRE2 while it matches.
    if (!set.is_plain() && ignores_case_.back()) refuse("an operation on sets that ignores case");
    result_ += pattern_of(set);
  }

  /// Reads a class from its bracket to the closing one.
  Set read_set(int depth) {
    constexpr int deepest = 20;
    if (depth > deepest) refuse(fmt::format("more than {} sets inside each other", deepest));
    Set set;
    ++position_;
    if (ahead("^")) {
      set.negated = true;
      ++position_;
    }
    if (ahead("]")) refuse("']' as the first character of a set");
    while (!ahead("]")) {
      if (position_ >= pattern_.size()) refuse("a set that is not closed");
      Set::Operand& operand = set.operands.back();
      if (ahead("&&")) {
        if (operand.members.empty() && operand.nested.empty()) refuse("'&&' without a set before it");
        position_ += 2;
        set.operands.emplace_back();
      } else if (ahead("[:")) {
        refuse("a POSIX class inside a set");
      } else if (ahead("[")) {
        const Set inner = read_set(depth + 1);
        if (inner.is_plain() && !inner.negated)
          operand.members += inner.operands.front().members;
        else
          operand.nested.push_back(pattern_of(inner));
      } else {
        const bool first = set.operands.size() == 1 && operand.members.empty() && operand.nested.empty();
        operand.members += read_members(first);
      }
    }
    if (set.operands.back().members.empty() && set.operands.back().nested.empty())
      refuse("'&&' without a set after it");
    ++position_;
    return set;
  }

  /// One character, range or escaped class of a set, as PCRE2 writes it. A '-' that is neither a range nor at an end of
  /// the set is refused, because the two libraries read it differently.
  std::string read_members(bool first) {
    const bool is_class = ahead_is_class();
    if (ahead("-") && !ahead("-]") && !first) refuse("'-' in the middle of a set");
    std::string members = read_member();
    if (!ahead("-") || ahead("-]")) return members;
    if (is_class) refuse("'-' behind a class inside a set");
    // Oniguruma takes the complement of such a range wrongly if the set is joined with another one.
    if (members == std::string_view("\0", 1) ||
        (members.starts_with("\\x{0") && members[members.find_first_not_of('0', 3)] == '}'))
      refuse("a range that begins with U+0000 inside a set");
    ++position_;
    if (ahead("[") || ahead("&&") || ahead("-") || ahead_is_class()) refuse("a range without an end inside a set");
    members += '-';
    return members + read_member();
  }

  bool ahead_is_class() const { return ahead("\\") && pattern_.substr(position_ + 1).find_first_of("sSwWdDhHpP") == 0; }

  /// One character or escape of a set. Signs are escaped, so that members of several sets can stand in one.
  std::string read_member() {
    if (position_ >= pattern_.size()) refuse("a set that is not closed");
    std::string before = std::exchange(result_, {});
    if (ahead("\\")) {
      escape();
    } else {
      if (std::ispunct(static_cast<unsigned char>(pattern_[position_])) != 0) result_ += '\\';
      std::size_t next = position_;
      next_code_point(pattern_, next);
      copy(next - position_);
    }
    return std::exchange(result_, std::move(before));
  }

  void group() {
    for (const std::string_view opening : {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:"}) {
      if (!ahead(opening)) continue;
      if (opening == "(?i:") ignores_case_.back() = true;
      return copy(opening.size());
    }
    // In the middle of a pattern, Ruby's (?i) would also enclose the branches that follow.
    if (ahead("(?i)") && position_ == 0) {
      ignores_case_.assign(1, true);
      return copy(4);
    }
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
        return ahead("\\x{") ? braced_code_point() : code_point(2);
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

  void braced_code_point() {
    const auto close = pattern_.find('}', position_);
    if (close == std::string_view::npos) refuse("an escape without its closing brace");
    copy(close + 1 - position_);
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
  std::vector<bool> ignores_case_{false};  ///< of the pattern, and of each group that is open
  std::string result_;
};

}  // namespace

std::string pcre2_from_oniguruma(std::string_view pattern, std::string_view where,
                                 const std::function<bool(std::string_view)>& is_script) {
  return Translation(pattern, where, is_script).run();
}

}  // namespace gainlens::tokenizers
