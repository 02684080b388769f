#include "reports/words/score_words.h"

#include "reports/words/compare_words.h"

#include <fmt/format.h>

namespace gainlens::reports {

std::string score_title(const std::string& name) {
  return name == "f1" ? "F1" : name == "exact_match" ? "exact match" : name;
}

std::string score_number(double value) {
  return fmt::format("{:.5g}", value);
}

std::string score_number(const analyses::ArmSummary& arm) {
  return fmt::format("{} ({})", score_number(arm.mean), arm.deviation ? fmt::format("{:.2g}", *arm.deviation) : "-");
}

std::string score_change(double value) {
  return fmt::format("{:+.4g}", value);
}

std::string score_interval(const Interval& ends) {
  return score_change(ends.low) + " to " + score_change(ends.high);
}

std::string p_on_page(const Measured& p) {
  return p ? compare_words::p_number(p) : "–";
}

std::string equivalence_in_words(const analyses::Equivalence& equivalence) {
  if (equivalence.flatness == analyses::Flatness::unknown) return "not testable: " + equivalence.p.reason();
  return fmt::format(
      "{} within ±{:g}: p {}, 90% {}",
      equivalence.flatness == analyses::Flatness::equivalent ? "equivalent" : "not shown to be equivalent",
      equivalence.margin, compare_words::p_number(equivalence.p), score_interval(*equivalence.interval));
}

}  // namespace gainlens::reports
