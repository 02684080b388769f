#pragma once

#include "analyses/experiment_comparison.h"
#include "analyses/measured.h"
#include "analyses/recommender_comparison.h"
#include "core/json.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// The level of a decision.
inline constexpr double decision_level = 0.05;

/// What a comparison says of one metric.
enum class Decision {
  better,
  worse,
  not_shown,      ///< no difference is shown; this does not show that there is none
  not_decidable,  ///< there is no p
};

/// The answer of a comparison for one metric, or score. The p that decides is that over seeds and units: of the log
/// ratio for recommenders, of the difference for other experiments, whose scores may be negative.
struct GainDecision {
  std::size_t comparison;  ///< place among the comparisons
  std::size_t metric;      ///< place among the metrics, or scores, of the comparison
  Decision decision;
  Measured p;
  Measured holm;       ///< p after Holm's correction over all rows that have one
  std::string reason;  ///< why it is not decidable, in few words: "2 seeds"; otherwise empty

  /// "better", "worse, not after Holm", "not shown", "not decidable: 2 seeds"
  std::string in_words() const;
};

/// One row for each comparison and metric, in their order.
std::vector<GainDecision> decide(std::span<const ArmComparison> comparisons);
std::vector<GainDecision> decide(std::span<const ExperimentComparison> comparisons);

/// The interval of the relative change over seeds alone, with the users and the mean of the baseline as fixed. It is
/// naive: it speaks of the same users.
Maybe<Interval> naive_relative_interval(const SeedComparison& seeds);

OrderedJson to_json(const GainDecision& decision);

}  // namespace gainlens::analyses
