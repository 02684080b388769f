#pragma once

#include "core/error.h"

#include <fmt/format.h>

#include <string_view>

namespace gainlens {

/// The reader of standard output has closed it (`gainlens ... | head -1`). The program then ends without a message, as
/// other programs do.
class ReaderGone : public RunFailed {
 public:
  using RunFailed::RunFailed;
};

/// Progress, notices and errors, on standard error. Never fails: a text that cannot be shown (full disk, closed
/// terminal) is lost, and no result depends on it. What a terminal would obey is made visible (terminal_text()).
void write_notice(std::string_view text) noexcept;
/// An escape sequence of our own, on standard error, as it is. Never for a text that comes from anywhere else.
void write_control(std::string_view sequence) noexcept;
/// Results, on standard output. What a terminal would obey is made visible, as in write_notice().
/// @throws RunFailed  they cannot be written; ReaderGone if the reader has closed standard output
void write_result(std::string_view text);
/// Writes what is still in the buffer of standard output. @throws as write_result
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
