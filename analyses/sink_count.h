#pragma once

#include "analyses/cells.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gainlens::analyses {

/// Counts the cells that are sinks on one key: those whose column mean at the key exceeds `column_mean_threshold`
/// (Gu et al.).
struct SinkCount {
  std::size_t cells = 0;  ///< with a column mean
  std::size_t sinks = 0;

  /// @param column_mean  of one (chunk, layer, head) at the key; NaN is not counted
  void add(double column_mean);
  /// Adds every head of `layers` in one chunk.
  /// @param column_means  summary/column_mean   @param length  position on the run's length axis
  /// @param layers        positions on the layer axis
  void add(const Cells& column_means, std::size_t length, std::int64_t sample, const std::vector<std::size_t>& layers,
           std::size_t key);
  /// sinks / cells. Requires cells > 0.
  double share() const { return static_cast<double>(sinks) / static_cast<double>(cells); }
};

}  // namespace gainlens::analyses
