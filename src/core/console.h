#pragma once

#include "core/error.h"

#include <fmt/format.h>

#include <string_view>

namespace gainlens {

/// Whoever read standard output has read enough (`gainlens ... | head -1`). The program ends without a word, as others
/// do.
class ReaderGone : public RunFailed {
 public:
  using RunFailed::RunFailed;
};

/// Progress, notices and errors, on standard error. Never fails: where they cannot be shown (a full disk, a closed
/// terminal) nothing happens, since no result depends on them.
void write_notice(std::string_view text) noexcept;
/// Results, on standard output.
/// @throws RunFailed  they cannot be written; ReaderGone where nobody reads them
void write_result(std::string_view text);
/// What is still in the buffer of standard output. @throws as write_result
void flush_results();

template <typename... Args>
void print_notice(fmt::format_string<Args...> format, Args&&... args) {
  write_notice(fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void print_result(fmt::format_string<Args...> format, Args&&... args) {
  write_result(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace gainlens
