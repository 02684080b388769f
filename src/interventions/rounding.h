#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <limits>

namespace gainlens::interventions {

/// The unit in the last place of numbers around 1.
inline double unit_of(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Double:
      return std::numeric_limits<double>::epsilon();
    case c10::ScalarType::Half:
      return std::numeric_limits<c10::Half>::epsilon();
    case c10::ScalarType::BFloat16:
      return std::numeric_limits<c10::BFloat16>::epsilon();
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

}  // namespace gainlens::interventions
