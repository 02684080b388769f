#pragma once

#include "analyses/measured.h"
#include "analyses/statistics.h"
#include "core/json.h"

#include <cstddef>
#include <span>
#include <string>

namespace gainlens::analyses {

/// The answer to "does nothing change?".
enum class Flatness {
  equivalent,  ///< equivalent to flat: the 90% interval lies within the margin
  changes,     ///< the 95% interval excludes 0, and equivalence is not shown
  not_shown,   ///< neither of these
  unknown      ///< too few pairs, or all of them alike
};

/// Two one-sided Student tests of the mean difference against +-margin, and a two-sided test against 0. At level 0.05,
/// the mean is equivalent to 0 if the 90% interval lies inside the margin, and is beyond the margin if the 95% interval
/// lies outside.
struct Equivalence {
  double margin;  ///< in the unit of the differences
  std::size_t pairs;
  Measured p;                ///< for equivalence: the larger of the two one-sided p
  Measured difference_p;     ///< two-sided, for a mean of 0
  Measured exceeds_p;        ///< two-sided, for a mean within the margin: small if the mean is shown to lie beyond it
  Maybe<Interval> interval;  ///< 90% Student interval of the mean
  Flatness flatness;
};

/// The answer that the p for equivalence and the p for a mean of 0 give.
Flatness flatness_of(double p, double difference_p);

/// @param estimate  a normal mean with its Student error, which is above 0
/// @param pairs     number of units behind the estimate
Equivalence test_equivalence(const Estimate& estimate, std::size_t pairs, double margin);
/// The result if no test is possible.
Equivalence no_equivalence(double margin, std::size_t pairs, const std::string& reason);

/// Source: Schuirmann 1987; docs/inference.md, "Gate is flat".
/// If the differences are the same up to rounding there is no test, because nothing shows their error.
/// @param differences  independent (one per chunk), finite; of logarithms, or of other numbers of about size 1
/// @param reason       used if `differences` is empty
Equivalence test_equivalence(std::span<const double> differences, double margin,
                             const std::string& reason = "there is no pair");

/// "equivalent to flat within +-0.1", "changes", "not shown to be flat within +-0.1", "not known: reason".
std::string in_words(const Equivalence& equivalence);
OrderedJson to_json(const Equivalence& equivalence);

}  // namespace gainlens::analyses
