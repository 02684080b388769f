#include "analyses/equivalence.h"

#include "analyses/permutation.h"
#include "analyses/statistics.h"
#include "core/check.h"

#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>

namespace gainlens::analyses {
namespace {

/// P(T > difference / error)
double upper_tail(double difference, double error, double degrees_of_freedom) {
  return boost::math::cdf(boost::math::complement(boost::math::students_t(degrees_of_freedom), difference / error));
}

std::string_view name_of(Flatness flatness) {
  switch (flatness) {
    case Flatness::equivalent:
      return "equivalent";
    case Flatness::changes:
      return "changes";
    case Flatness::not_shown:
      return "not shown";
    case Flatness::unknown:
      return "unknown";
  }
  ASSERT(false, "flatness {}", static_cast<int>(flatness));
}

}  // namespace

Flatness flatness_of(double p, double difference_p) {
  if (p <= significance) return Flatness::equivalent;
  return difference_p <= significance ? Flatness::changes : Flatness::not_shown;
}

Equivalence no_equivalence(double margin, std::size_t pairs, const std::string& reason) {
  return {margin,
          pairs,
          Measured::none(reason),
          Measured::none(reason),
          Measured::none(reason),
          Maybe<Interval>::none(reason),
          Flatness::unknown};
}

Equivalence test_equivalence(const Estimate& estimate, std::size_t pairs, double margin) {
  ASSERT(margin > 0 && std::isfinite(margin) && estimate.error > 0, "a margin of {}, an error of {}", margin,
         estimate.error);
  const auto& [centre, error, degrees] = estimate;
  const double p = std::max(upper_tail(margin + centre, error, degrees), upper_tail(margin - centre, error, degrees));
  const double difference_p = std::min(1.0, 2 * upper_tail(std::abs(centre), error, degrees));
  const double exceeds_p = std::min(1.0, 2 * upper_tail(std::abs(centre) - margin, error, degrees));
  return {margin,
          pairs,
          p,
          difference_p,
          exceeds_p,
          student_interval(estimate, 1 - 2 * significance),
          flatness_of(p, difference_p)};
}

Equivalence test_equivalence(std::span<const double> differences, double margin, const std::string& reason) {
  if (differences.size() < 2) {
    return no_equivalence(margin, differences.size(),
                          differences.empty() ? reason : "an equivalence test needs at least 2 chunks; there is 1");
  }
  double scale = 1;
  for (const double difference : differences) scale = std::max(scale, std::abs(difference));
  if (alike(differences, scale)) return no_equivalence(margin, differences.size(), same_in_every_chunk);
  return test_equivalence(mean_estimate(differences), differences.size(), margin);
}

std::string in_words(const Equivalence& equivalence) {
  switch (equivalence.flatness) {
    case Flatness::equivalent:
      return fmt::format("equivalent to flat within ±{:g}", equivalence.margin);
    case Flatness::changes:
      return "changes";
    case Flatness::not_shown:
      return fmt::format("not shown to be flat within ±{:g}", equivalence.margin);
    case Flatness::unknown:
      return "not known: " + equivalence.p.reason();
  }
  ASSERT(false, "flatness {}", static_cast<int>(equivalence.flatness));
}

OrderedJson to_json(const Equivalence& equivalence) {
  OrderedJson json;
  json["margin"] = equivalence.margin;
  json["pairs"] = equivalence.pairs;
  put(json, "equivalence_p", equivalence.p);
  put(json, "difference_p", equivalence.difference_p);
  put(json, "exceeds_margin_p", equivalence.exceeds_p);
  put(json, "interval_90", equivalence.interval);
  json["flatness"] = name_of(equivalence.flatness);
  json["words"] = in_words(equivalence);
  return json;
}

}  // namespace gainlens::analyses
