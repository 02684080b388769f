#pragma once

#include "reports/sweep/sweep_run.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace gainlens::reports {

/// gnuplot's ticks for places 0, 1, ..., at most `most` of them, evenly spaced from the first: "'0' 0, '4' 4".
std::string even_ticks(std::size_t count, std::size_t most, const std::function<std::string(std::size_t)>& label);

/// [layer] global attention, in a model that has windows too; else empty.
std::vector<bool> global_layers(const SweepRun& run);

/// Ticks of an axis over the run's layers: every global layer in bold, in a model that has windows too.
/// @param most  ticks that have room
std::string layer_ticks(const SweepRun& run, std::size_t most);

}  // namespace gainlens::reports
