#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace gainlens::kernels {

/// Smallest and largest of the elements seen, and whether all were finite.
struct Extrema {
  double smallest = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
  bool finite = true;

  void add(const Extrema& other) {
    smallest = std::min(smallest, other.smallest);
    largest = std::max(largest, other.largest);
    finite = finite && other.finite;
  }
  double magnitude() const { return std::max(std::abs(smallest), std::abs(largest)); }
};

}  // namespace gainlens::kernels
