#pragma once

#include "analyses/recommender_results.h"
#include "core/json.h"

#include <span>
#include <string>

namespace gainlens::reports {

/// A recommender run, as the sections of its report see it.
struct TrainedRun {
  std::string name;  ///< for readers
  analyses::RecommenderResults results;
  Json preset;  ///< the settings of the preset "paper", by key

  const std::string& label() const { return name; }
  const runfile::RecommendRun& run() const { return *results.run; }
};
/// A report holds one run.
using TrainedRuns = std::span<const TrainedRun>;

}  // namespace gainlens::reports
