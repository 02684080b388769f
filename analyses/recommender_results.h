#pragma once

#include "analyses/arm_pairs.h"
#include "analyses/recommender_comparison.h"
#include "analyses/seed_comparison.h"
#include "core/json.h"
#include "core/ranking_metrics.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::analyses {

/// One number of each finished seed of an arm.
struct SeedValues {
  std::vector<double> by_seed;  ///< [finished seed]
  Maybe<ArmSummary> over_seeds;
  /// The mean with its error over seeds and users; users with one target item err together.
  Maybe<CrossedEstimate> crossed = Maybe<CrossedEstimate>::none("not computed");
};

/// Least and most of some counts.
using Reach = std::pair<std::int64_t, std::int64_t>;

/// What one arm of a run reached.
struct ArmResult {
  std::string name;
  std::vector<std::uint64_t> finished, missing;           ///< seeds of the run; an arm of another size has missing ones
  bool trained;                                           ///< false: an arm without training, the same with every seed
  std::vector<std::int64_t> epochs;                       ///< [finished seed] done; 0 without training
  std::vector<std::int64_t> best_epochs;                  ///< [finished seed] from 1; 0 without training
  std::vector<SeedValues> test;                           ///< [ranking_metrics()] on the test items
  SeedValues validation;                                  ///< `curve_metric` on the validation items, at the best epoch
  std::vector<std::vector<SeedValues>> by_item, by_user;  ///< [stratum][RecommenderResults::metrics]
  std::vector<ArmCurve> curves;                           ///< empty without training

  Maybe<Reach> reach_of_epochs() const;  ///< missing without training
  Maybe<Reach> reach_of_best_epochs() const;
};

/// Everything that a report says of one run.
struct RecommenderResults {
  std::shared_ptr<const runfile::RecommendRun> run;
  std::vector<ArmResult> arms;         ///< in the run's order; at least one has a finished seed
  std::vector<RankingMetric> metrics;  ///< of the strata
  StratifiedUsers by_item, by_user;
  double length_frequency_correlation;     ///< as in ArmComparison
  std::vector<ArmComparison> comparisons;  ///< of each later arm with the first, over the seeds that both have
  std::vector<std::string> not_compared;   ///< why an arm is not among them
  PaperMatch paper;                        ///< the paper's data set beside which this one stands

  std::size_t finished() const;  ///< number of arms × seeds
  bool complete() const { return finished() == arms.size() * run->seeds.size(); }
};

/// @param path  of the run, for messages
/// @throws InvalidArgument  no seed is finished
RecommenderResults recommender_results(const std::filesystem::path& path,
                                       const std::shared_ptr<const runfile::RecommendRun>& run,
                                       const RecommenderOptions& options = {});

/// The JSON of one number: null, with the reason, if no seed has it.
OrderedJson to_json(const SeedValues& values);
/// Seeds, epochs, and every test metric of an arm.
OrderedJson to_json(const ArmResult& arm);

}  // namespace gainlens::analyses
