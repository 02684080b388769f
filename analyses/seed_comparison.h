#pragma once

#include "analyses/measured.h"
#include "analyses/options.h"
#include "analyses/paired_units.h"
#include "analyses/sign_tests.h"
#include "core/json.h"

#include <cstddef>
#include <span>
#include <string>

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

/// One arm: its runs differ in their seed.
struct ArmSummary {
  double mean;
  Measured deviation;  ///< sample standard deviation over seeds (ddof 1); missing with one seed
};

/// Whether there is a deviation to be shown: an arm without training is the same with every seed, while ranks made
/// elsewhere, of which nothing is known, may differ.
inline bool varies(const ArmSummary& arm, bool trained) {
  return trained || (arm.deviation && *arm.deviation > 0);
}

/// @param values  [seed] at least one
ArmSummary arm_summary(std::span<const double> values);

/// Two arms, paired by seed. Every test and interval here has the seed as its sample and the units (users,
/// documents) as fixed: it speaks of other trainings, evaluated on the same units. seed_unit.h speaks of other units
/// too.
struct SeedComparison {
  std::size_t seeds;
  ArmSummary baseline;
  ArmSummary candidate;
  double difference;         ///< mean of candidate - baseline
  Measured relative;         ///< difference / mean of the baseline; missing if that mean is 0
  Measured correlation;      ///< Pearson, between the arms over seeds
  Measured t;                ///< paired t: mean of the differences / its Student error
  Measured naive_p;          ///< of t, two-sided: the paper's test
  Maybe<Interval> interval;  ///< 95% Student interval of the mean difference
  SignedTest signs;
  SignedTest ranks;               ///< Wilcoxon's signed ranks
  SignedTest flips;               ///< sign flips of the mean difference
  Maybe<OutlyingValue> farthest;  ///< the seed whose difference lies farthest from those of the others
  std::string noun;               ///< what a unit is called

  /// Whether a seed lies far from the others (Grubbs' p at most 5%), as a failed training does.
  bool has_far_seed() const;
};

/// Source: bft.tex, "Main results" (paired t); docs/inference.md, "Gains over seeds".
/// Every test uses `means.differences`. If they are the same with every seed, nothing is tested.
/// @param means  at least one run, finite
SeedComparison compare_seeds(const SeedMeans& means, const Resampling& resampling = {});

/// From this number of seeds on the level holds for every symmetric distribution over seeds, also if each training ends
/// in one of two ways. Below, it rests on the form, which nobody knows; for skewed ones it never holds.
/// Source: docs/analyses/seed-coverage.md.
inline constexpr std::size_t fewest_seeds_of_symmetric_form = 5;
/// "with fewer than 5 seeds, a p below .01 cannot be relied on, and one of .05 takes ..."; empty for one seed, which
/// has no p, and from five on.
std::string few_seeds_note(std::size_t seeds);

OrderedJson to_json(const ArmSummary& arm);
OrderedJson to_json(const SeedComparison& comparison);

}  // namespace gainlens::analyses
