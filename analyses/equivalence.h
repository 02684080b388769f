#pragma once

#include "analyses/measured.h"
#include "analyses/statistics.h"
#include "core/json.h"

#include <cstddef>
#include <span>
#include <string>

namespace gainlens::analyses {

/// What paired differences say about "nothing changes".
enum class Flatness {
  equivalent,  ///< equivalent to flat: the 90% interval lies within the margin
  changes,     ///< the 95% interval excludes 0, and equivalence is not shown
  not_shown,   ///< neither
  unknown      ///< too few pairs
};

/// Two one-sided Student tests of mean differences against +-margin, and the two-sided one against 0. Equivalence at
/// level 0.05 is the 90% interval inside the margin; a mean beyond it at that level the 95% interval outside.
struct Equivalence {
  double margin;  ///< in the unit of the differences
  std::size_t pairs;
  Measured p;                ///< of equivalence: the larger of the two one-sided p
  Measured difference_p;     ///< two-sided, of a mean of 0
  Measured exceeds_p;        ///< two-sided, of a mean within the margin: small where the mean is shown to lie beyond it
  Maybe<Interval> interval;  ///< 90% Student interval of the mean
  Flatness flatness;
};

/// @param estimate  a normal mean with its Student error
/// @param pairs     units that it rests on
Equivalence test_equivalence(const Estimate& estimate, std::size_t pairs, double margin);
/// Nothing can be said, for a reason.
Equivalence no_equivalence(double margin, std::size_t pairs, const std::string& reason);

/// Source: Schuirmann 1987; inference.md, gate is flat.
/// @param differences  independent (one a chunk); finite
/// @param reason       why there are none, if there are none
Equivalence test_equivalence(std::span<const double> differences, double margin,
                             const std::string& reason = "there is no pair");

/// "equivalent to flat within +-0.1", "changes", "not shown to be flat within +-0.1", "not known: reason".
std::string in_words(const Equivalence& equivalence);
OrderedJson to_json(const Equivalence& equivalence);

}  // namespace gainlens::analyses
