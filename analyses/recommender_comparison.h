#pragma once

#include "analyses/arm_pairs.h"
#include "analyses/crossed_estimate.h"
#include "analyses/gain_regression.h"
#include "analyses/options.h"
#include "analyses/paired_units.h"
#include "analyses/paper_gains.h"
#include "analyses/pooled_data_sets.h"
#include "analyses/seed_unit.h"
#include "core/json.h"
#include "core/ranking_metrics.h"
#include "core/strata.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
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

struct RecommenderOptions {
  std::vector<RankingMetric> metrics = {
      {RankingMetric::Kind::hit, 10}, {RankingMetric::Kind::gain, 10}, {RankingMetric::Kind::reciprocal_rank, 0}};
  std::vector<std::int64_t> item_edges;  ///< of the strata of items; empty: true quintiles of the catalogue
  std::string paper;                     ///< the paper's data set: see paper_match(); empty: by the size of the data
  Resampling resampling;
  Resamples resamples;
};

/// One metric of two arms. Users with one target item err together.
struct MetricGain : ScoreGain {
  RankingMetric metric;
  Maybe<GainRegression> regression;
};

/// Gains of groups of users.
struct StratifiedGains : StratifiedUsers {
  /// [metric] the first stratum (rare items, cold users) against the last. Missing if there are fewer than two strata.
  Maybe<std::vector<StratumInteraction>> gains = Maybe<std::vector<StratumInteraction>>::none("not computed");
};

/// Everything that is computed of two arms.
struct ArmComparison {
  std::string data_set, backbone, split;    ///< data_set: name of the data file; backbone: see backbones_of()
  std::string baseline, candidate;          ///< labels
  std::string baseline_arm, candidate_arm;  ///< names of the arms in their runs
  std::vector<std::uint64_t> baseline_seeds, candidate_seeds;
  std::size_t users, items;
  std::vector<MetricGain> metrics;
  StratifiedGains by_item, by_user;
  double
      length_frequency_correlation;  ///< Pearson over users: known items, training count of the target. NaN: constant
  std::vector<ArmCurve> baseline_curves, candidate_curves;  ///< empty: an arm without training
  PaperMatch paper;                                         ///< the paper's data set beside which this one stands

  /// "bft against plain on Beauty (sasrec)"
  std::string title() const;
  /// The same with the first digits of the split, for reports on two splits of one data file.
  std::string title_with_split() const;
};

/// "sasrec"; of arms with two backbones "bert4rec against sasrec", of which the paper prints nothing.
std::string backbones_of(const ArmPair& pair);

/// The paper's data set of a run: see paper_match().
PaperMatch paper_match_of(const runfile::RecommendRun& run, std::string_view name);

/// What the paper prints for these arms, which are the backbone ("plain") and the backbone with BFT ("bft"); null for
/// other arms, and where it prints nothing.
const PaperGain* paper_gain(const ArmComparison& comparison, const RankingMetric& metric);
const double* paper_stratum(const ArmComparison& comparison, StratumKind kind, std::size_t stratum,
                            const RankingMetric& metric);

/// Source: docs/inference.md, "Gains over seeds" and "Strata of users".
/// @throws InvalidArgument  edges that do not rise
ArmComparison compare_arms(const ArmPair& pair, const RecommenderOptions& options);

/// The same two arms of one backbone on several data sets.
struct PooledComparison {
  std::string backbone, baseline_arm, candidate_arm;
  std::vector<RankingMetric> names;
  std::vector<PooledDataSets> metrics;  ///< [metric]
};
/// One entry for each pair of arms that was compared on at least two splits.
/// Source: docs/inference.md, "Pooled over data sets".
std::vector<PooledComparison> pool_comparisons(std::span<const ArmComparison> comparisons,
                                               const RecommenderOptions& options);

OrderedJson to_json(const ArmComparison& comparison);
OrderedJson to_json(const PooledComparison& pooled);

}  // namespace gainlens::analyses
