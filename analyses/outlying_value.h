#pragma once

#include "analyses/measured.h"

#include <cstddef>
#include <span>

namespace gainlens::analyses {

/// The value that lies farthest from the others.
struct OutlyingValue {
  std::size_t place;
  double p;  ///< how often the farthest of so many normal values lies as far from the others
};

/// Grubbs' test, two-sided: the distance of a value from the mean of the others in units of its error, Student's t with
/// n - 2 degrees of freedom, times n (Bonferroni).
/// Source: Grubbs 1950.
/// Missing with fewer than three values, and where all others are alike: nothing shows their spread then.
/// @param values  finite
Maybe<OutlyingValue> outlying_value(std::span<const double> values);

}  // namespace gainlens::analyses
