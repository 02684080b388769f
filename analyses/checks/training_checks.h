#pragma once

#include "analyses/checks/check.h"
#include "runfile/experiment_run.h"
#include "runfile/recommend_run.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// Trainings that are checked: those of a run, or one alone.
struct CheckedTrainings {
  const runfile::TrainedRun& trainings;
  std::string command;        ///< that made them
  std::string changed = {};   ///< why the files are not those that were written; empty: nothing speaks against it
  std::string unproven = {};  ///< why some files were not compared, a clause or sentences; empty: all were
  std::string not_compared = "the files";  ///< what `unproven` is about
  bool alone = false;                      ///< one training, given by its folder: its run is not looked at
  std::function<std::string(const runfile::TrainedSeed&)> divergence_of = {};  ///< why it has diverged; empty: not
  std::string filter_advice = {};                                              ///< where the filter was not in force
  std::string bounds_advice = {};                                              ///< where a layer is at its bound
};

/// Those of recommenders. @param made  must exist as long as this object
struct CheckedRecommenders : CheckedTrainings {
  explicit CheckedRecommenders(const runfile::RecommendRun& made);
  const runfile::RecommendRun& run;
};

/// Those of another experiment, such as a fine-tuning. @param made  must exist as long as this object
struct CheckedExperiment : CheckedTrainings {
  explicit CheckedExperiment(const runfile::ExperimentRun& made);
  const runfile::ExperimentRun& run;
};

/// A training of a language model, as its folder tells.
struct LanguageTraining {
  std::string changed;     ///< which files are not those that were written; empty: nothing speaks against them
  std::string unproven;    ///< which files were not compared, as sentences; empty: all were
  std::int64_t steps = 0;  ///< that were asked for
  bool may_stop = false;   ///< whether it may stop earlier (patience)
  std::int64_t vocabulary = 0;
  std::vector<std::int64_t> step;     ///< [evaluation] steps done
  std::vector<double> loss;           ///< [evaluation] of training since the last one
  std::vector<double> held_out;       ///< [evaluation]
  std::string arm = "plain";          ///< what was trained: docs/bft.md
  bool filtered = false;              ///< the model has a Bayesian filter: the arm is bft. A control has a part of it
  std::vector<double> gain;           ///< [layer] K at the last evaluation; NaN while the filter warms up
  std::vector<double> share_at_most;  ///< [layer] share of lambda_obs at its bound, likewise
};

/// The place of the evaluation whose held-out loss is smallest; a loss that is not finite is larger than any other.
/// @pre  there is an evaluation
std::size_t best_evaluation(const LanguageTraining& training);

/// Share of the precisions of a layer at their bound, from which on they tell nothing.
inline constexpr double nearly_all = 0.99;
/// Fewest seeds of an arm: a p over seeds and users needs as many.
inline constexpr std::size_t min_seeds = 3;

// The lists, in the order in which they are printed. A test compares docs/analyses/check.md with them.
std::span<const Check<CheckedRecommenders>> recommender_checks();
std::span<const Check<CheckedExperiment>> experiment_checks();
std::span<const Check<LanguageTraining>> language_checks();

/// @param folder  of the checkpoint: it holds the folder `training`
/// @throws InvalidArgument  the training has not been finished once; a file is missing or broken
LanguageTraining read_language_training(const std::filesystem::path& folder);

}  // namespace gainlens::analyses
