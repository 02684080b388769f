#pragma once

#include "formats/tensor_file.h"

#include <ostream>

namespace gainlens::formats {

/// Prints a dtype by its name in test names and messages. Every test that prints a dtype includes this header.
inline void PrintTo(DType dtype, std::ostream* out) {
  *out << name_of(dtype);
}

}  // namespace gainlens::formats
