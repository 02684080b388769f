#pragma once

// The one way to PCRE2, for libraries that link it.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>

namespace gainlens::pcre2 {

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

/// What a code of PCRE2 means.
inline std::string reason_of(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

struct Compilation {
  Owned<pcre2_code> code;  ///< null: PCRE2 refuses the pattern
  std::string reason;      ///< why it does
  std::size_t offset = 0;  ///< at which byte of the pattern
};

inline Compilation compile(std::string_view pattern, std::uint32_t options) {
  const Owned<pcre2_compile_context> context(pcre2_compile_context_create(nullptr));
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);  // whatever the library was built with
  Compilation result;
  int error = 0;
  result.code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options, &error,
                                  &result.offset, context.get()));
  if (!result.code) result.reason = reason_of(error);
  return result;
}

/// Patterns come from files that are not trusted, so each match is limited: in its steps, which also limit how deep it
/// goes back, and in memory.
struct Limits {
  std::uint32_t steps = 10'000'000;     ///< of a match in a text: PCRE2's own
  std::uint32_t heap_kib = 64u << 10;   ///< without the just-in-time compiler
  std::size_t stack_bytes = 16u << 20;  ///< with it
};

/// What PCRE2 needs for matching, in one thread. To make it takes longer than to search a word.
class Matcher {
 public:
  /// @param groups  captured spans, with that of the whole match
  explicit Matcher(const Limits& limits, std::uint32_t groups = 1)
      : data_(pcre2_match_data_create(groups, nullptr)),
        context_(pcre2_match_context_create(nullptr)),
        stack_(pcre2_jit_stack_create(32 << 10, limits.stack_bytes, nullptr)) {
    if (!data_ || !context_) throw std::bad_alloc();
    pcre2_set_match_limit(context_.get(), limits.steps);
    pcre2_set_depth_limit(context_.get(), limits.steps);
    pcre2_set_heap_limit(context_.get(), limits.heap_kib);
    pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
  }

  /// @return  PCRE2's code; on a match the spans are in data()
  int match(const pcre2_code* code, std::string_view text, std::size_t start, std::uint32_t options) {
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), start, options, data_.get(),
                       context_.get());
  }
  pcre2_match_data* data() { return data_.get(); }
  std::size_t begin() const { return pcre2_get_ovector_pointer(data_.get())[0]; }
  std::size_t end() const { return pcre2_get_ovector_pointer(data_.get())[1]; }

 private:
  Owned<pcre2_match_data> data_;
  Owned<pcre2_match_context> context_;
  Owned<pcre2_jit_stack> stack_;
};

}  // namespace gainlens::pcre2
