#pragma once

#include "analyses/measured.h"
#include "analyses/options.h"
#include "analyses/sign_tests.h"
#include "core/json.h"

#include <cstddef>
#include <span>
#include <string>

namespace gainlens::analyses {

/// One arm: its runs differ in their seed.
struct ArmSummary {
  double mean;
  Measured deviation;  ///< sample standard deviation over seeds (ddof 1); missing with one seed
};

/// @param values  [seed] at least one
ArmSummary arm_summary(std::span<const double> values);

/// Two arms, paired by seed. Every test and interval here has the seed as its unit and the test users as fixed: it
/// speaks of other trainings, evaluated on the same users. seed_user.h speaks of other users too.
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
  SignedTest ranks;  ///< Wilcoxon's signed ranks
  SignedTest flips;  ///< sign flips of the mean difference
};

/// Source: bft.tex, "Main results" (paired t); docs/inference.md, "Gains over seeds".
/// @param baseline, candidate  [seed] a metric of each run; same size, at least one, finite
SeedComparison compare_seeds(std::span<const double> baseline, std::span<const double> candidate,
                             const Resampling& resampling = {});

OrderedJson to_json(const ArmSummary& arm);
OrderedJson to_json(const SeedComparison& comparison);

}  // namespace gainlens::analyses
