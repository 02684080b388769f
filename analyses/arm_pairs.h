#pragma once

#include "analyses/measured.h"
#include "core/strata.h"
#include "runfile/experiment_run.h"
#include "runfile/recommend_run.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

// Arms of a run, whatever its units are. Run is runfile::RecommendRun or runfile::ExperimentRun.

/// One arm of a run.
template <typename Run>
struct ArmOf {
  std::filesystem::path path;  ///< of the run, as the user gave it
  std::shared_ptr<const Run> run;
  std::size_t arm;
  std::string label = {};  ///< for readers; see name_arms()
  bool seedless = false;   ///< a list of ranks that names no seed: run->seeds is {0}

  std::string where() const;  ///< "runs/one:bft", for messages

  const std::string& name() const { return run->arms[arm]; }
  /// Positions on the seed axis of the finished seeds.
  std::vector<std::size_t> finished() const;
  std::vector<std::uint64_t> seeds() const;  ///< finished ones
  const runfile::TrainedSeed& result(std::size_t seed) const { return *run->result(arm, seed); }
  /// @param name  of a score: runfile::rank_score, or one of runfile::ExperimentRun::unit_scores
  /// @returns  [finished seed, unit]
  std::vector<double> scores(const std::string& name) const;
};
using RecommenderArm = ArmOf<runfile::RecommendRun>;
using ExperimentArm = ArmOf<runfile::ExperimentRun>;

/// Gives each arm its label: the name of the arm ("bft"), with that of its run folder ("one:bft") if another arm on the
/// same split has the same name, with the path if that does not tell them apart either.
/// @throws InvalidArgument  an arm of one path stands twice
template <typename Run>
void name_arms(std::vector<ArmOf<Run>>& arms);

/// What the strata of a run are made of.
UserCounts user_counts(const runfile::RecommendRun& run);

/// Two arms on the same units. Their finished seeds are paired one by one.
template <typename Run>
struct PairOf {
  ArmOf<Run> baseline;
  ArmOf<Run> candidate;
  bool by_position = false;  ///< the seeds differ, and are paired in order
};
using ArmPair = PairOf<runfile::RecommendRun>;
using ExperimentPair = PairOf<runfile::ExperimentRun>;

struct Pairing {
  std::string baseline;        ///< name of the baseline arm; empty: the first arm of a split
  bool by_position = false;    ///< seeds that differ are paired in order
  bool deterministic = false;  ///< the ranks of a seedless arm stand for every seed of the other
};

/// Pairs every arm with the baseline of its split. Arms of one split keep their order.
/// @throws InvalidArgument  a split has one arm alone; it has no arm of the name `baseline` (nearest match named); two
///     arms have the same checksum of the split but other units; their finished seeds differ (both lists are shown)
template <typename Run>
std::vector<PairOf<Run>> pair_arms(const std::vector<ArmOf<Run>>& arms, const Pairing& pairing);

/// Two arms of one run with the seeds that both have finished. Missing if there is none.
Maybe<ArmPair> pair_shared_seeds(const RecommenderArm& baseline, const RecommenderArm& candidate);

/// The metric on the validation items that chooses the best epoch.
inline constexpr std::string_view curve_metric = "ndcg@10";

/// The learning curves of one seed.
struct ArmCurve {
  std::uint64_t seed;
  std::vector<double> values;     ///< [epoch] `curve_metric`
  std::int64_t best_epoch;        ///< from 1
  std::vector<double> loss = {};  ///< [epoch] the training loss, nats; empty: the run does not hold it
};

/// The curves of all finished seeds; empty: an arm without training.
std::vector<ArmCurve> curves_of(const RecommenderArm& arm);

/// Mean over seeds of `values` or `loss`. It ends with the shortest curve, so that every point of it holds all seeds.
/// @returns  [epoch]; empty without curves
std::vector<double> mean_curve(std::span<const ArmCurve> curves, std::vector<double> ArmCurve::*member);

}  // namespace gainlens::analyses
