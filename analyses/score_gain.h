#pragma once

#include "analyses/options.h"
#include "analyses/seed_comparison.h"
#include "analyses/seed_unit.h"
#include "core/json.h"

#include <cstddef>
#include <span>
#include <vector>

namespace gainlens::analyses {

/// One score of two arms, whatever its unit is: candidate against baseline.
struct ScoreGain {
  std::vector<double> seed_differences;  ///< [seed] candidate - baseline
  SeedComparison seeds;                  ///< over seeds, units fixed
  Maybe<CrossedEstimate> difference;     ///< over seeds and units
  Maybe<CrossedEstimate> log_ratio;      ///< likewise
  BootstrapGains bootstrap;
};

/// Source: docs/inference.md, "Gains over seeds".
/// @param cluster  as for crossed_gain()
ScoreGain score_gain(const PairedUnits& pairs, std::span<const std::size_t> cluster, const Resampling& resampling,
                     const Resamples& resamples);

OrderedJson to_json(const ScoreGain& gain);

}  // namespace gainlens::analyses
