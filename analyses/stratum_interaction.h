#pragma once

#include "analyses/crossed_estimate.h"
#include "analyses/paired_units.h"
#include "analyses/paper_gains.h"
#include "analyses/seed_unit.h"
#include "core/json.h"
#include "core/strata.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// Groups of users, and what their users look like.
struct StratifiedUsers {
  StratumKind kind;
  bool shares_edges;  ///< whether items whose count is an edge can be on both sides of it
  Strata strata;
  std::vector<StratumComposition> composition;  ///< [stratum]
};

/// @param item_edges  of strata of items; empty: true quintiles of the catalogue
/// @throws InvalidArgument  edges that do not rise
StratifiedUsers stratify(StratumKind kind, const UserCounts& users, const std::vector<std::int64_t>& item_edges = {});

std::string_view name_of(StratumKind kind);  ///< "item_frequency"
/// {"edges": [...], "composition": [...]}
OrderedJson to_json(const StratifiedUsers& users);

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
