#pragma once

#include "analyses/experiment_comparison.h"
#include "analyses/gain_decisions.h"
#include "analyses/seed_comparison.h"
#include "runfile/experiment_run.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// Arms that were trained on answers with several shares of wrong words (`train finetune`).

namespace gainlens::analyses {

/// One arm at one level.
struct NoiseCell {
  std::size_t arm;    ///< place among NoiseLevels::arms
  std::size_t level;  ///< place among NoiseLevels::levels
  std::vector<std::uint64_t> seeds;
  /// By metric, [seed]: "f1" is over all questions, "f1_not_selected" without those that chose the best epoch too.
  std::map<std::string, std::vector<double>> means;
};

/// Which levels a comparison takes.
struct NoiseRange {
  std::optional<std::size_t> only = {};     ///< one level
  std::optional<std::size_t> without = {};  ///< all but one; neither: all
  bool pooled() const { return !only && !without; }
};

/// An arm against the baseline.
struct NoiseGain {
  std::size_t arm;
  NoiseRange range;
  /// Of the means over the levels of the range, question by question and seed by seed: seeds and questions are the
  /// samples, however many levels there are. Missing if no seed has finished both arms at all of them.
  Maybe<ExperimentComparison> comparison;
  /// [score] the paper's p: the paired t over all pairs of seed and level, as if a seed were as many samples as it has
  /// levels. Of one level the paired t over seeds.
  std::vector<Measured> naive_p = {};
};

struct NoiseLevels {
  std::string data_set, unit;
  std::vector<std::string> arms;      ///< the baseline first
  std::vector<double> levels;         ///< percent, rising
  std::vector<NoiseCell> cells;       ///< finished ones
  std::vector<NoiseGain> gains;       ///< arm by arm: each level, all levels, and all but one
  std::size_t selection_units = 0;    ///< the first units, which chose the best epoch too; no gain counts them
  std::vector<GainDecision> decided;  ///< of rows(): Holm's correction is over these

  /// The gains of single levels and of all levels together; those without one level are no answers of their own.
  std::vector<const NoiseGain*> rows() const;
  const NoiseCell* cell(std::size_t arm, std::size_t level) const;  ///< null: not finished
};

/// Whether a run has levels of noise.
bool has_noise_levels(const runfile::ExperimentRun& run);

/// @param path      of the run, for messages
/// @param baseline  name of an arm; empty: the first
/// @throws InvalidArgument  the run has no levels of noise, no finished training, or no such arm (nearest match named)
/// Source: docs/inference.md, "Gains over seeds"; bft.tex, section "LLM fine-tuning experiments".
NoiseLevels noise_levels(const std::filesystem::path& path, const std::shared_ptr<const runfile::ExperimentRun>& run,
                         const std::string& baseline, const ExperimentOptions& options);

OrderedJson to_json(const NoiseLevels& levels);

}  // namespace gainlens::analyses
