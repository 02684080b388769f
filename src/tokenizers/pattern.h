#pragma once

#include "tokenizers/json_node.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::tokenizers {

/// A part of a text, in bytes.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool matched = false;
};

/// A compiled pattern (PCRE2, UTF-8). Usable from several threads at once.
class Pattern {
 public:
  /// A pattern of tokenizer.json, in Oniguruma's syntax.
  /// @param where  names the file and entry in messages
  /// @throws InvalidArgument  PCRE2 refuses it, or it holds a construct that the two libraries read differently; the
  ///     message names `--tokens`
  static Pattern oniguruma(std::string_view pattern, std::string_view where);
  /// A literal text.
  static Pattern literal(std::string_view text, std::string_view where);
  /// A pattern of gainlens itself, in PCRE2's syntax.
  static Pattern pcre2(std::string_view pattern, std::string_view where);

  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  /// The matches and the parts between them, in order; together they cover the text. For an empty text: one empty span
  /// without a match.
  /// @param text  valid UTF-8
  /// @throws InvalidArgument  PCRE2's match limit is reached
  std::vector<Span> spans(std::string_view text) const;
  /// The first spans of `text`, as far as they are the same whatever follows it. Matches that looked at the end of the
  /// text are left out, with everything behind them.
  /// @throws InvalidArgument  PCRE2's match limit is reached
  std::vector<Span> certain_spans(std::string_view text) const;
  /// Whether a match depends on where it starts alone: the search can then go on at the end of any span, without the
  /// text before it. Not so with a lookbehind, an anchor such as ^ or \A, or a match that may be empty.
  bool starts_anywhere() const;

 private:
  struct Compiled;
  explicit Pattern(std::unique_ptr<Compiled> compiled);
  std::vector<Span> find_spans(std::string_view text, bool certain) const;
  std::unique_ptr<Compiled> compiled_;
};

/// A pattern as tokenizer.json writes it: {"String": literal} or {"Regex": pattern}.
/// @throws InvalidArgument  anything else, or as Pattern::oniguruma
Pattern read_pattern(const JsonNode& node);

}  // namespace gainlens::tokenizers
