#pragma once

#include "runfile/trained_run.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// What the filter of an arm did in one layer.
struct FilterLayer {
  /// By name (runfile::filter_curves()), [epoch]: mean over the seeds. It ends with the shortest seed. NaN while the
  /// filter warms up in some seed.
  std::map<std::string, std::vector<double>> mean;
  /// By name, [seed]: at the epoch whose weights were tested.
  std::map<std::string, std::vector<double>> tested;
};

/// The layers of all finished seeds of an arm; empty: it has no filter.
/// @param arm  number of the arm
std::vector<FilterLayer> filter_layers(const runfile::TrainedRun& run, std::size_t arm);

}  // namespace gainlens::analyses
