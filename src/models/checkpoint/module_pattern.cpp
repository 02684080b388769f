#define PCRE2_CODE_UNIT_WIDTH 8

#include "models/checkpoint/module_pattern.h"

#include "core/check.h"

#include <pcre2.h>

#include <array>
#include <cstdint>
#include <new>

namespace gainlens::models {
namespace {

constexpr std::size_t max_pattern_bytes = 64u << 10;
// A pattern of a published adapter takes some thousand steps for a name.
constexpr std::uint32_t max_steps = 1'000'000;
constexpr std::uint32_t max_heap_kib = 64u << 10;

struct FreePattern {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
template <typename T>
using OwnedPattern = std::unique_ptr<T, FreePattern>;

std::string pcre2_reason(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

}  // namespace

struct ModulePattern::Compiled {
  OwnedPattern<pcre2_code> code;
  std::string where, shown;

  /// @return  whether `name` matches; then its spans are in `data`
  bool run(std::string_view name, std::uint32_t options, pcre2_match_data* data) const {
    const OwnedPattern<pcre2_match_context> context(pcre2_match_context_create(nullptr));
    if (!context) throw std::bad_alloc();
    pcre2_set_match_limit(context.get(), max_steps);
    pcre2_set_depth_limit(context.get(), max_steps);
    pcre2_set_heap_limit(context.get(), max_heap_kib);
    const int result = pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(name.data()), name.size(), 0, options, data,
                                   context.get());
    CHECK(result >= 0 || result == PCRE2_ERROR_NOMATCH,
          "{}: the pattern '{}' stops at '{}': {}; list the names of the modules in its place", where, shown,
          printable(name, 100), pcre2_reason(result));
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
  int error = 0;
  std::size_t offset = 0;
  compiled->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                     PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr));
  CHECK(compiled->code != nullptr, "{}: the pattern '{}' is no regular expression: {}, at byte {}", compiled->where,
        compiled->shown, pcre2_reason(error), offset);
  compiled_ = std::move(compiled);
}

bool ModulePattern::matches(std::string_view name) const {
  const OwnedPattern<pcre2_match_data> data(pcre2_match_data_create_from_pattern(compiled_->code.get(), nullptr));
  if (!data) throw std::bad_alloc();
  return compiled_->run(name, PCRE2_ANCHORED | PCRE2_ENDANCHORED, data.get());
}

std::string ModulePattern::index_in(std::string_view name) const {
  const OwnedPattern<pcre2_match_data> data(pcre2_match_data_create_from_pattern(compiled_->code.get(), nullptr));
  if (!data) throw std::bad_alloc();
  if (!compiled_->run(name, PCRE2_ANCHORED, data.get())) return "";
  std::array<PCRE2_UCHAR, 32> digits{};
  std::size_t length = digits.size();
  const auto* group = reinterpret_cast<PCRE2_SPTR>("idx");
  CHECK(pcre2_substring_copy_byname(data.get(), group, digits.data(), &length) == 0,
        "{}: the pattern '{}' finds no number of a layer in '{}'", compiled_->where, compiled_->shown,
        printable(name, 100));
  return {reinterpret_cast<const char*>(digits.data()), length};
}

}  // namespace gainlens::models
