#pragma once

#include "analyses/filter_layers.h"
#include "analyses/noise_levels.h"
#include "reports/figures/figure.h"
#include "reports/made_report.h"
#include "runfile/experiment_run.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace gainlens::reports {

/// The filter of one arm at one level of noise.
struct FilterOfLevel {
  std::string label;  ///< "bft/np0"
  std::vector<analyses::FilterLayer> layers;
  /// [seed] held-out loss before the training, without the filter and with the whole of it. Empty: not known.
  std::vector<double> start_loss = {}, start_loss_with_filter = {};
};

/// What is logged of a learned gamma.
struct GammaPath {
  std::string label;                       ///< "focal/np0"
  std::vector<std::vector<double>> seeds;  ///< [seed][epoch]
};

/// A fine-tuning run, as the sections of its report see it.
struct FinetunedRun {
  std::string name;                                   ///< for readers
  std::shared_ptr<const runfile::ExperimentRun> run;  ///< never null
  std::vector<std::string> unproven;                  ///< experiment::ProvenRun::unproven
  analyses::NoiseLevels levels;
  std::vector<FilterOfLevel> filters;
  std::vector<GammaPath> gammas;
  /// "squad" or "nq" where the paper has the same task, with its condition for nq (passages); else empty.
  std::string paper_task = {};
  double passages = 0;

  const std::string& label() const { return name; }
};

/// What follows the name of a score in the name of the metric that leaves out the units that chose the best epoch.
inline constexpr const char* not_selected = "_not_selected";

/// Whether every arm and seed has every score without the units that chose the best epoch too.
bool has_scores_without_selection(const analyses::NoiseLevels& levels);

/// Scores against the share of wrong words, a panel for each score: the mean over seeds of each arm with one standard
/// error to both sides, as in the paper's figure. Without the units that chose the best epoch where
/// has_scores_without_selection(), as noise_gains_figure() is. Missing with more arms than can be told apart.
Maybe<Figure> noise_figure(const analyses::NoiseLevels& levels);

/// The change of each score against the baseline, with its interval over seeds and units. Missing without a change.
Maybe<Figure> noise_gains_figure(const analyses::NoiseLevels& levels);

/// K, lambda and the share of lambda_obs at its bound against the layer, a curve for each epoch; what an arm does not
/// have has no panel. Missing where the filter was never in force.
Maybe<Figure> filter_by_layer_figure(const FilterOfLevel& filter);

/// Writes the report of `gainlens report RUN` of a fine-tuning into `out`: see write_files().
/// @throws InvalidArgument, RunFailed  see write_files()
WrittenReport write_finetune_report(const FinetunedRun& run, const std::filesystem::path& out, const Writing& writing);

}  // namespace gainlens::reports
