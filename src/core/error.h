#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace gainlens {

/// What the user asked for, or a file they gave, is wrong. The program ends with exit code 2.
/// Messages read `<where>: <what was found>; <what is allowed or how to fix it>`.
class InvalidArgument : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The request was right but could not be carried out (full disk, NaN logits). Exit code 1.
class RunFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The build lacks this part (CUDA). Exit code 2.
class NotCompiled : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

/// A mistake in gainlens, never the user's.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Makes a path or other untrusted text safe for a one-line message. The result is always UTF-8. Control and formatting
/// characters, and bytes that are not UTF-8, become \xNN. The text is cut after at most `limit` bytes, never inside a
/// character.
std::string printable(std::string_view text, std::size_t limit = 200);

[[noreturn]] void throw_internal_error(const char* file, int line, const std::string& message);

template <typename... Args>
[[noreturn]] void throw_invalid(fmt::format_string<Args...> format, Args&&... args) {
  throw InvalidArgument(fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
[[noreturn]] void throw_run_failed(fmt::format_string<Args...> format, Args&&... args) {
  throw RunFailed(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace gainlens
