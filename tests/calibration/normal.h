#pragma once

#include "core/random.h"

#include <cmath>

namespace gainlens::testing {

/// Two normal numbers at a time (Box and Muller 1958).
class NormalNumbers {
 public:
  explicit NormalNumbers(Random& random) : random_(random) {}
  double draw() {
    if (has_second_) {
      has_second_ = false;
      return second_;
    }
    const double radius = std::sqrt(-2 * std::log1p(-random_.uniform())), angle = 2 * M_PI * random_.uniform();
    second_ = radius * std::sin(angle);
    has_second_ = true;
    return radius * std::cos(angle);
  }

 private:
  Random& random_;
  double second_ = 0;
  bool has_second_ = false;
};

}  // namespace gainlens::testing
