#define PCRE2_CODE_UNIT_WIDTH 8

#include "tokenizers/pattern.h"

#include "core/check.h"
#include "tokenizers/code_points.h"
#include "tokenizers/oniguruma.h"

#include <pcre2.h>

#include <array>

namespace gainlens::tokenizers {
namespace {

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

struct Compilation {
  Owned<pcre2_code> code;
  int error = 0;
  std::size_t offset = 0;
};

Compilation compile(std::string_view pattern, std::uint32_t options) {
  const Owned<pcre2_compile_context> context(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);  // whatever the library was built with
  Compilation result;
  result.code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options, &result.error,
                                  &result.offset, context.get()));
  return result;
}

std::string reason(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

bool is_script(std::string_view name) {
  return compile(fmt::format("\\p{{sc:{}}}", name), PCRE2_UTF).code != nullptr;
}

}  // namespace

struct Pattern::Compiled {
  Owned<pcre2_code> code;
  std::string source, where;
  bool just_in_time = false;

  static std::unique_ptr<Compiled> make(std::string_view pattern, std::string_view source, std::string_view where,
                                        std::uint32_t options) {
    Compilation compilation = compile(pattern, options | PCRE2_UTF);
    CHECK(compilation.code != nullptr,
          "{}: PCRE2 refuses the pattern '{}' at byte {} of '{}': {}; make the ids with the model's own software and "
          "give them with --tokens FILE.json",
          where, printable(source), compilation.offset, printable(pattern), reason(compilation.error));
    auto compiled = std::make_unique<Compiled>();
    compiled->code = std::move(compilation.code);
    compiled->source = source;
    compiled->where = where;
    compiled->just_in_time = pcre2_jit_compile(compiled->code.get(), PCRE2_JIT_COMPLETE) == 0;
    return compiled;
  }
};

namespace {

/// One pass over one text.
class Search {
 public:
  Search(const pcre2_code* code, bool just_in_time, std::string_view text)
      : code_(code),
        text_(text),
        data_(pcre2_match_data_create(1, nullptr)),
        context_(pcre2_match_context_create(nullptr)) {
    ASSERT(data_ && context_, "PCRE2 has no memory");
    if (!just_in_time) return;
    stack_.reset(pcre2_jit_stack_create(32 << 10, 16 << 20, nullptr));
    pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
  }

  /// PCRE2's return code; on a match the span is in begin() and end().
  int at(std::size_t start) {
    // The text is checked once by the caller; checking it at every match would make the work quadratic.
    return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), start, PCRE2_NO_UTF_CHECK,
                       data_.get(), context_.get());
  }
  std::size_t begin() const { return pcre2_get_ovector_pointer(data_.get())[0]; }
  std::size_t end() const { return pcre2_get_ovector_pointer(data_.get())[1]; }

 private:
  const pcre2_code* code_;
  std::string_view text_;
  Owned<pcre2_match_data> data_;
  Owned<pcre2_match_context> context_;
  Owned<pcre2_jit_stack> stack_;
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
  std::vector<Span> spans;
  Search search(compiled_->code.get(), compiled_->just_in_time, text);
  std::size_t covered = 0;
  for (std::size_t start = 0; start <= text.size();) {
    const int code = search.at(start);
    if (code == PCRE2_ERROR_NOMATCH) break;
    CHECK(code >= 0, "{}: the pattern '{}' stops at byte {} of the text: {}; give ids with --tokens FILE.json",
          compiled_->where, printable(compiled_->source), start, reason(code));
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
  if (covered != text.size()) spans.push_back({covered, text.size(), false});
  return spans;
}

Pattern read_pattern(const JsonNode& node) {
  node.allow_only({"String", "Regex"});
  if (node.has("Regex") == node.has("String")) node.unsupported("a pattern that is not one of String and Regex");
  return node.has("Regex") ? Pattern::oniguruma(node.at("Regex").text(), node.where())
                           : Pattern::literal(node.at("String").text(), node.where());
}

}  // namespace gainlens::tokenizers
