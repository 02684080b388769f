#include "analyses/seed_comparison.h"

#include "analyses/permutation.h"
#include "analyses/statistics.h"
#include "core/check.h"

#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace gainlens::analyses {
namespace {

/// Paired t, its p and its interval.
void add_student(SeedComparison& comparison, const std::vector<double>& differences) {
  if (differences.size() < 2) return;
  const Estimate estimate = mean_estimate(differences);
  if (alike(differences, 0)) {
    comparison.t = comparison.naive_p = Measured::none("the difference is the same with every seed");
    comparison.interval = Maybe<Interval>::none(comparison.t.reason());
    // Copies of one difference are one observation, for tests of signs too: arms without training have nothing else.
    for (SignedTest* const test : {&comparison.signs, &comparison.ranks, &comparison.flips}) test->p = comparison.t;
    return;
  }
  const double t = estimate.value / estimate.error;
  comparison.t = t;
  comparison.naive_p =
      2 * boost::math::cdf(boost::math::complement(boost::math::students_t(estimate.degrees_of_freedom), std::abs(t)));
  comparison.interval = student_interval(estimate);
}

}  // namespace

Maybe<OutlyingValue> outlying_value(std::span<const double> values) {
  using Result = Maybe<OutlyingValue>;
  const std::size_t count = values.size();
  if (count < 3) return Result::none("a value among others needs at least 3 values");
  OutlyingValue found{0, 1};
  double farthest = -1;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<double> others(values.begin(), values.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    if (alike(others, 0)) return Result::none("all values but one are alike");
    const Estimate middle = mean_estimate(others);  // the value itself errs by the deviation of one
    const double distance = std::abs(values[i] - middle.value) / (middle.error * std::sqrt(static_cast<double>(count)));
    if (distance <= farthest) continue;
    farthest = distance;
    found.place = i;
  }
  const boost::math::students_t student(static_cast<double>(count - 2));
  found.p =
      std::min(1.0, 2 * static_cast<double>(count) * boost::math::cdf(boost::math::complement(student, farthest)));
  return found;
}

ArmSummary arm_summary(std::span<const double> values) {
  if (values.size() < 2)
    return {mean(values), Measured::none("a standard deviation needs at least 2 seeds; there is 1")};
  const Estimate estimate = mean_estimate(values);
  return {estimate.value, estimate.error * std::sqrt(static_cast<double>(values.size()))};
}

OrderedJson to_json(const ArmSummary& arm) {
  OrderedJson json;
  json["mean"] = arm.mean;
  put(json, "standard_deviation", arm.deviation);
  return json;
}

SeedComparison compare_seeds(const SeedMeans& means, const Resampling& resampling) {
  const std::vector<double>& differences = means.differences;
  ASSERT(!differences.empty() && means.baseline.size() == differences.size() &&
             means.candidate.size() == differences.size(),
         "{} and {} runs, {} differences", means.baseline.size(), means.candidate.size(), differences.size());
  const std::string single = "a paired test needs at least 2 seeds; there is 1";
  const ArmSummary before = arm_summary(means.baseline), after = arm_summary(means.candidate);
  SeedComparison comparison{
      differences.size(),
      before,
      after,
      mean(differences),
      before.mean != 0 ? Measured(mean(differences) / before.mean) : Measured::none("the mean of the baseline is 0"),
      correlation(means.baseline, means.candidate, {"the baseline", "the candidate"}).pearson,
      Measured::none(single),
      Measured::none(single),
      Maybe<Interval>::none(single),
      sign_test(differences),
      signed_rank_test(differences),
      flip_test(differences, resampling),
      outlying_value(differences),
      means.noun};
  add_student(comparison, differences);
  return comparison;
}

bool SeedComparison::has_far_seed() const {
  return farthest && farthest->p <= significance;
}

std::string few_seeds_note(std::size_t seeds) {
  if (seeds < 2 || seeds >= fewest_seeds_of_symmetric_form) return "";
  // Of two equally likely ends, all seeds have the same one in 2 of 2^n cases, and Student's t then rejects.
  return fmt::format(
      "with fewer than {} seeds, a p below .01 cannot be relied on, and one of .05 takes effects of seeds as "
      "bell-shaped or uniform: if each training ends in one of two ways, {} seeds give it in {:.3g}%",
      fewest_seeds_of_symmetric_form, seeds, 200 / std::exp2(static_cast<double>(seeds)));
}

OrderedJson to_json(const SeedComparison& comparison) {
  OrderedJson json;
  json["seeds"] = comparison.seeds;
  json["baseline"] = to_json(comparison.baseline);
  json["candidate"] = to_json(comparison.candidate);
  json["difference"] = comparison.difference;
  put(json, "relative_difference", comparison.relative);
  put(json, "correlation_of_pairs", comparison.correlation);
  put(json, "paired_t", comparison.t);
  put(json, "paired_t_naive_p", comparison.naive_p);
  if (const std::string note = few_seeds_note(comparison.seeds); !note.empty()) json["p_note"] = note;
  put(json, fmt::format("interval_95_same_{}s", comparison.noun), comparison.interval);
  json["sign_test"] = to_json(comparison.signs);
  json["signed_rank_test"] = to_json(comparison.ranks);
  json["sign_flips_of_mean"] = to_json(comparison.flips);
  if (comparison.farthest) {
    json["farthest_seed"] = {{"place", comparison.farthest->place}, {"p", comparison.farthest->p}};
  } else {
    put(json, "farthest_seed", Measured::none(comparison.farthest.reason()));
  }
  return json;
}

}  // namespace gainlens::analyses
