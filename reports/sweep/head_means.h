#pragma once

#include "analyses/selection.h"
#include "reports/sweep/sweep_run.h"
#include "runfile/schema.h"

#include <cstddef>
#include <vector>

namespace gainlens::reports {

/// The scalars of a head: means over the complete chunks of each length. The last one is the sink mass
/// (analyses::SinkKeys::mass_of), where the run holds the sinks of every key.
struct HeadMeans {
  struct Quantity {
    runfile::HeadQuantity info;
    std::vector<double> values;  ///< [length of `lengths`, layer, head]; NaN if no chunk has a value
  };
  std::vector<analyses::Length> lengths;  ///< with a complete chunk, shortest first
  std::vector<Quantity> quantities;       ///< in the order of runfile::head_quantities(), then sink_mass
  std::size_t layers;
  std::size_t heads;

  double at(const Quantity& quantity, std::size_t length, std::size_t layer, std::size_t head) const {
    return quantity.values[(length * layers + layer) * heads + head];
  }
};

/// @throws InvalidArgument  see analyses::usable_lengths()
HeadMeans head_means(const SweepRun& run);

}  // namespace gainlens::reports
