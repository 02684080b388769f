#include "models/checkpoint/module_pattern.h"

#include "core/check.h"
#include "core/pcre2.h"

#include <array>
#include <cstdint>

namespace gainlens::models {
namespace {

constexpr std::size_t max_pattern_bytes = 64u << 10;
// A pattern of a published adapter takes some thousand steps for a name.
constexpr pcre2::Limits name_limits = {.steps = 1'000'000};

}  // namespace

struct ModulePattern::Compiled {
  pcre2::Owned<pcre2_code> code;
  std::string where, shown;

  pcre2::Matcher matcher() const {
    std::uint32_t groups = 0;
    pcre2_pattern_info(code.get(), PCRE2_INFO_CAPTURECOUNT, &groups);
    return pcre2::Matcher(name_limits, groups + 1);
  }

  /// @return  whether `name` matches; then its spans are in `matcher`
  bool run(std::string_view name, std::uint32_t options, pcre2::Matcher& matcher) const {
    const int result = matcher.match(code.get(), name, 0, options);
    CHECK(result >= 0 || result == PCRE2_ERROR_NOMATCH,
          "{}: the pattern '{}' stops at '{}': {}; list the names of the modules in its place", where, shown,
          printable(name, 100), pcre2::reason_of(result));
    return result >= 0;
  }
};

ModulePattern::ModulePattern(std::string_view pattern, std::string where) {
  auto compiled = std::make_shared<Compiled>();
  compiled->shown = printable(pattern, 100);
  compiled->where = std::move(where);
  CHECK(pattern.size() <= max_pattern_bytes, "{}: a pattern of {} bytes; at most {} are read", compiled->where,
        pattern.size(), max_pattern_bytes);
  for (const std::string_view other : {"{,", "[[", "\\Z", "\\N", "(?(", "(*"})
    CHECK(pattern.find(other) == std::string_view::npos,
          "{}: the pattern '{}' has '{}', which Python and PCRE2 read differently; list the names of the modules",
          compiled->where, compiled->shown, other);
  pcre2::Compilation compilation = pcre2::compile(pattern, PCRE2_NEVER_BACKSLASH_C);
  CHECK(compilation.code != nullptr, "{}: the pattern '{}' is no regular expression: {}, at byte {}", compiled->where,
        compiled->shown, compilation.reason, compilation.offset);
  compiled->code = std::move(compilation.code);
  compiled_ = std::move(compiled);
}

bool ModulePattern::matches(std::string_view name) const {
  pcre2::Matcher matcher = compiled_->matcher();
  return compiled_->run(name, PCRE2_ANCHORED | PCRE2_ENDANCHORED, matcher);
}

std::string ModulePattern::index_in(std::string_view name) const {
  pcre2::Matcher matcher = compiled_->matcher();
  if (!compiled_->run(name, PCRE2_ANCHORED, matcher)) return "";
  std::array<PCRE2_UCHAR, 32> digits{};
  std::size_t length = digits.size();
  const auto* group = reinterpret_cast<PCRE2_SPTR>("idx");
  CHECK(pcre2_substring_copy_byname(matcher.data(), group, digits.data(), &length) == 0,
        "{}: the pattern '{}' finds no number of a layer in '{}'", compiled_->where, compiled_->shown,
        printable(name, 100));
  return {reinterpret_cast<const char*>(digits.data()), length};
}

}  // namespace gainlens::models
