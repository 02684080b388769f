#pragma once

#include "analyses/arm_pairs.h"
#include "analyses/gain_regression.h"
#include "analyses/options.h"
#include "analyses/paper_gains.h"
#include "analyses/pooled_data_sets.h"
#include "analyses/seed_unit.h"
#include "analyses/stratum_interaction.h"
#include "core/json.h"
#include "core/ranking_metrics.h"
#include "core/strata.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

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
