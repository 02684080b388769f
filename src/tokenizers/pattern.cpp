#include "tokenizers/pattern.h"

#include "core/check.h"
#include "core/pcre2.h"
#include "tokenizers/code_points.h"
#include "tokenizers/oniguruma.h"

namespace gainlens::tokenizers {
namespace {

bool is_script(std::string_view name) {
  return pcre2::compile(fmt::format("\\p{{sc:{}}}", name), PCRE2_UTF).code != nullptr;
}

}  // namespace

struct Pattern::Compiled {
  pcre2::Owned<pcre2_code> code;
  std::string source, where;
  bool literal = false;

  static std::unique_ptr<Compiled> make(std::string_view pattern, std::string_view source, std::string_view where,
                                        std::uint32_t options) {
    pcre2::Compilation compilation = pcre2::compile(pattern, options | PCRE2_UTF);
    CHECK(compilation.code != nullptr,
          "{}: PCRE2 refuses the pattern '{}' at byte {} of '{}': {}; make the ids with the model's own software and "
          "give them with --tokens FILE.json",
          where, printable(source), compilation.offset, printable(pattern), compilation.reason);
    auto compiled = std::make_unique<Compiled>();
    compiled->code = std::move(compilation.code);
    compiled->source = source;
    compiled->where = where;
    compiled->literal = (options & PCRE2_LITERAL) != 0;
    // Without the just-in-time compiler, patterns are interpreted.
    pcre2_jit_compile(compiled->code.get(), PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
    return compiled;
  }
};

namespace {

/// One pass over one text.
class Search {
 public:
  Search(const pcre2_code* code, std::string_view text) : code_(code), text_(text) {
    static thread_local pcre2::Matcher matcher{pcre2::Limits{}};
    matcher_ = &matcher;
  }

  /// PCRE2's return code; on a match the span is in begin() and end().
  /// @param certain  the code is PCRE2_ERROR_PARTIAL as soon as the end of the text is looked at
  int at(std::size_t start, bool certain) {
    // The text is checked once by the caller; checking it at every match would make the work quadratic.
    return matcher_->match(code_, text_, start, PCRE2_NO_UTF_CHECK | (certain ? PCRE2_PARTIAL_HARD : 0));
  }
  std::size_t begin() const { return matcher_->begin(); }
  std::size_t end() const { return matcher_->end(); }

 private:
  const pcre2_code* code_;
  std::string_view text_;
  pcre2::Matcher* matcher_;
};

}  // namespace

Pattern Pattern::oniguruma(std::string_view pattern, std::string_view where) {
  // In Ruby, ^ and $ always match at the start and end of lines.
  return Pattern(Compiled::make(pcre2_from_oniguruma(pattern, where, is_script), pattern, where, PCRE2_MULTILINE));
}

Pattern Pattern::literal(std::string_view text, std::string_view where) {
  CHECK(!text.empty(), "{}: an empty text to look for; give at least one character", where);
  return Pattern(Compiled::make(text, text, where, PCRE2_LITERAL));
}

Pattern Pattern::pcre2(std::string_view pattern, std::string_view where) {
  return Pattern(Compiled::make(pattern, pattern, where, PCRE2_UCP));
}

Pattern::Pattern(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

std::vector<Span> Pattern::spans(std::string_view text) const {
  if (text.empty()) return {Span{}};
  return find_spans(text, false);
}

std::vector<Span> Pattern::certain_spans(std::string_view text) const {
  return find_spans(text, true);
}

bool Pattern::starts_anywhere() const {
  std::uint32_t lookbehind = 0, matches_empty = 0;
  pcre2_pattern_info(compiled_->code.get(), PCRE2_INFO_MAXLOOKBEHIND, &lookbehind);
  pcre2_pattern_info(compiled_->code.get(), PCRE2_INFO_MATCHEMPTY, &matches_empty);
  if (lookbehind > 0 || matches_empty != 0) return false;
  if (compiled_->literal) return true;
  const std::string_view source = compiled_->source;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '^' && (i == 0 || source[i - 1] != '[')) return false;  // an anchor, or the sign itself
  }
  return source.find("\\A") == std::string_view::npos && source.find("\\G") == std::string_view::npos;
}

std::vector<Span> Pattern::find_spans(std::string_view text, bool certain) const {
  std::vector<Span> spans;
  Search search(compiled_->code.get(), text);
  std::size_t covered = 0;
  for (std::size_t start = 0; start <= text.size();) {
    const int code = search.at(start, certain);
    if (code == PCRE2_ERROR_NOMATCH || code == PCRE2_ERROR_PARTIAL) break;
    CHECK(code >= 0, "{}: the pattern '{}' stops at byte {} of the text: {}; give ids with --tokens FILE.json",
          compiled_->where, printable(compiled_->source), start, pcre2::reason_of(code));
    if (search.begin() == search.end() && !spans.empty() && search.begin() == covered) {
      // An empty match directly after the last match does not count, as in the reference. Go on after the next
      // character.
      if (start < text.size())
        next_code_point(text, start);
      else
        break;
      continue;
    }
    if (covered != search.begin()) spans.push_back({covered, search.begin(), false});
    spans.push_back({search.begin(), search.end(), true});
    covered = start = search.end();
  }
  if (!certain && covered != text.size()) spans.push_back({covered, text.size(), false});
  return spans;
}

Pattern read_pattern(const JsonNode& node) {
  node.allow_only({"String", "Regex"});
  if (node.has("Regex") == node.has("String")) node.unsupported("a pattern that is not one of String and Regex");
  return node.has("Regex") ? Pattern::oniguruma(node.at("Regex").text(), node.where())
                           : Pattern::literal(node.at("String").text(), node.where());
}

}  // namespace gainlens::tokenizers
