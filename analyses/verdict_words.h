#pragma once

#include "analyses/measured.h"

#include <fmt/format.h>

#include <string>

namespace gainlens::analyses {

/// The number in a format of fmt, or "not known". The reason stands elsewhere in the claim.
inline std::string number_or_unknown(const Measured& value, const char* format = "{:+.3f}") {
  return value ? fmt::format(fmt::runtime(format), *value) : "not known";
}

}  // namespace gainlens::analyses
