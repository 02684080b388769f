#pragma once

#include "analyses/arm_pairs.h"
#include "analyses/crossed_estimate.h"
#include "analyses/options.h"
#include "analyses/seed_unit.h"
#include "core/json.h"
#include "core/unit_scores.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::analyses {

struct ExperimentOptions {
  std::vector<std::string> scores = {};  ///< names; empty: all of the run
  std::optional<double> margin = {};     ///< of the equivalence test, in the unit of the scores; absent: no test
  Resampling resampling = {};
  Resamples resamples = {};
};

/// One score of two arms. The difference decides: a score may be 0 or negative, and has then no ratio.
struct UnitScoreGain : ScoreGain {
  UnitScore score;
  std::optional<Equivalence> equivalence;  ///< of the difference
};

/// Two arms of experiments that are evaluated on the same units.
struct ExperimentComparison {
  std::string data_set, split;
  std::string unit;                 ///< what a unit is called: "document"
  std::string baseline, candidate;  ///< labels
  std::vector<std::uint64_t> baseline_seeds, candidate_seeds;
  std::size_t units;
  std::size_t selection_units = 0;  ///< of these, the first ones, which chose the best epoch too
  std::vector<UnitScoreGain> scores;

  /// "bft against plain on wiki"
  std::string title() const;
  /// What it means that some units chose the best epoch too; empty if none did.
  std::string selection_note() const;
};

/// Source: docs/inference.md, "Gains over seeds".
/// @throws InvalidArgument  a score that one of the runs does not have (nearest match named), or that they judge in
///     different directions; a margin that is not above 0
ExperimentComparison compare_arms(const ExperimentPair& pair, const ExperimentOptions& options);

OrderedJson to_json(const ExperimentComparison& comparison);

}  // namespace gainlens::analyses
