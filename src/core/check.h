#pragma once

// The checks of the sources. Headers do not include this file, and it is not installed: the names of its macros are too
// common to be given to users of the library.

#include "core/error.h"

// libtorch's logging header defines its own CHECK. It is included first and its macro is removed, so CHECK is always
// the one below, whatever the order of includes. Targets without libtorch do not have that header.
#if __has_include(<c10/util/Logging.h>)
#include <c10/util/Logging.h>
#undef CHECK
#endif

/// For mistakes of the user: throws InvalidArgument with the formatted message if the condition is false.
#define CHECK(condition, ...)                                 \
  do {                                                        \
    if (!(condition)) ::gainlens::throw_invalid(__VA_ARGS__); \
  } while (false)

/// For mistakes in gainlens: throws InternalError with file, line and message if the condition is false.
#define ASSERT(condition, ...)                                                                        \
  do {                                                                                                \
    if (!(condition)) ::gainlens::throw_internal_error(__FILE__, __LINE__, fmt::format(__VA_ARGS__)); \
  } while (false)
