#pragma once

#include "analyses/cells.h"
#include "runfile/schema.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// Means over the complete chunks of one length.
struct Heatmap {
  runfile::HeadQuantity quantity;
  Length length;
  std::vector<std::int64_t> layers;  ///< the model's own numbers
  std::size_t heads;
  std::vector<double> values;         ///< [layer, head]; NaN if no chunk has a value
  std::vector<bool> by_construction;  ///< [layer] bos_mass where key 0 is outside the window, so it must be 0
  std::size_t left_out;               ///< values of complete chunks that are not finite

  double at(std::size_t layer, std::size_t head) const { return values[layer * heads + head]; }
};

/// The means at the longest length with a complete chunk. Missing if the run does not have the statistic or has no
/// value of it.
/// @throws InvalidArgument  see usable_lengths()
/// @param name  of a runfile::HeadQuantity
Maybe<Heatmap> heatmap(const runfile::RunReader& reader, std::string_view name);
OrderedJson to_json(const Heatmap& heatmap);

}  // namespace gainlens::analyses
