#pragma once

#include "analyses/crossed_estimate.h"
#include "analyses/paired_units.h"
#include "analyses/seed_unit.h"
#include "core/json.h"

#include <cstddef>
#include <span>
#include <vector>

namespace gainlens::analyses {

/// The gain of one group of users.
struct StratumGain {
  std::size_t users;
  Measured baseline;                  ///< mean over runs and users; missing if the stratum is empty
  Measured candidate;                 ///< likewise
  Measured relative;                  ///< candidate / baseline - 1
  Measured naive_p;                   ///< paired t over seeds: the paper's test
  Measured naive_holm;                ///< after Holm's correction over strata
  Maybe<CrossedEstimate> difference;  ///< over seeds and users
  Maybe<CrossedEstimate> log_ratio;
  Measured crossed_holm;  ///< p of `log_ratio` after Holm's correction over strata; `relative` is what it speaks of
};

/// "Gains concentrate on rare items" says that one stratum gains more than another. One test a stratum does not show
/// that: this is the test of the difference between the two gains.
struct StratumInteraction {
  std::vector<StratumGain> strata;
  std::size_t first;                  ///< stratum with sign +, such as rare items
  std::size_t second;                 ///< stratum with sign -, such as popular items
  Maybe<CrossedEstimate> difference;  ///< of gains as differences: shows where the metric moves
  Maybe<CrossedEstimate> log_ratio;   ///< of relative gains: the paper's percentages
  BootstrapGains bootstrap;
};

/// Source: docs/inference.md, "Strata of users".
/// @param stratum  [user] below `strata`
/// @param unit     the clusters of crossed_gain: users of one target item err together
StratumInteraction stratum_interaction(const PairedUnits& users, std::span<const std::size_t> stratum,
                                       std::size_t strata, std::size_t first, std::size_t second,
                                       std::span<const std::size_t> unit = {}, const Resamples& resamples = {});

OrderedJson to_json(const StratumInteraction& interaction);

}  // namespace gainlens::analyses
