#pragma once

#include "analyses/cells.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// A statistic that is drawn layer by head.
struct HeatmapQuantity {
  std::string_view name;    ///< dataset under summary/
  std::string_view window;  ///< queries it is averaged over
};
/// n_eff, kalman_gain, kalman_gain_scaled, bos_mass, entropy.
std::span<const HeatmapQuantity> heatmap_quantities();

/// Means over the complete chunks of one length.
struct Heatmap {
  HeatmapQuantity quantity;
  Length length;
  std::vector<std::int64_t> layers;  ///< the model's own numbers
  std::size_t heads;
  std::vector<double> values;         ///< [layer, head]; NaN where no chunk has a value
  std::vector<bool> by_construction;  ///< [layer] bos_mass of a layer whose window hides key 0: 0 by construction
  std::size_t left_out;               ///< values of complete chunks that are not finite

  double at(std::size_t layer, std::size_t head) const { return values[layer * heads + head]; }
};

/// At the longest length with a complete chunk. Missing where the run has no such statistic or no value of it.
/// @throws InvalidArgument  see usable_lengths()
Maybe<Heatmap> heatmap(const runfile::RunReader& reader, const HeatmapQuantity& quantity);
OrderedJson to_json(const Heatmap& heatmap);

}  // namespace gainlens::analyses
