#include "analyses/equivalence.h"

#include "analyses/permutation.h"
#include "analyses/statistics.h"

#include <boost/math/distributions/students_t.hpp>
#include <boost/math/statistics/univariate_statistics.hpp>

#include <algorithm>
#include <cmath>

namespace gainlens::analyses {
namespace {

/// P(T > difference / error); differences without any spread are certain.
double upper_tail(double difference, double error, double degrees_of_freedom) {
  if (error == 0) return difference > 0 ? 0.0 : 1.0;
  return boost::math::cdf(boost::math::complement(boost::math::students_t(degrees_of_freedom), difference / error));
}

Flatness judge(double p, double difference_p) {
  if (p <= significance) return Flatness::equivalent;
  return difference_p <= significance ? Flatness::changes : Flatness::not_shown;
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

Equivalence test_equivalence(std::span<const double> differences, double margin, const std::string& reason) {
  ASSERT(margin > 0 && std::isfinite(margin), "an equivalence margin of {}", margin);
  if (differences.size() < 2) {
    const std::string why = differences.empty() ? reason : "an equivalence test needs at least 2 chunks; there is 1";
    return {margin,           differences.size(), Measured::none(why), Measured::none(why), Measured::none(why), Maybe<Interval>::none(why),
            Flatness::unknown};
  }
  const auto n = static_cast<double>(differences.size());
  const double centre = mean(differences);
  const double error = std::sqrt(boost::math::statistics::sample_variance(differences.begin(), differences.end()) / n);
  const double p = std::max(upper_tail(margin + centre, error, n - 1), upper_tail(margin - centre, error, n - 1));
  const double difference_p = std::min(1.0, 2 * upper_tail(std::abs(centre), error, n - 1));
  const double exceeds_p = std::min(1.0, 2 * upper_tail(std::abs(centre) - margin, error, n - 1));
  const double reach = error * boost::math::quantile(boost::math::students_t(n - 1), 1 - significance);
  return {margin, differences.size(), p, difference_p, exceeds_p, Interval{centre - reach, centre + reach}, judge(p, difference_p)};
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
