#pragma once

#include "analyses/intervention_effects.h"
#include "analyses/patching_effects.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// Effects of one kind of intervention by layer and by head or position.
struct EffectMap {
  std::string title;  ///< "attn.hook_z = zero"
  bool heads = true;  ///< whether columns are heads; else positions
  std::vector<std::int64_t> layers;
  std::int64_t columns = 0;
  std::vector<double> values;  ///< [layer, column]; NaN: not measured
  std::vector<bool> doubtful;  ///< [layer, column] the interval holds 0, or the intervention changes nothing
  std::vector<std::optional<std::size_t>> places;  ///< [layer, column] the place of the intervention in its list
  std::vector<std::string> labels = {};            ///< [column] the tokens of positions; empty: numbers alone

  double at(std::size_t layer, std::int64_t column) const { return values.at(index(layer, column)); }
  bool doubtful_at(std::size_t layer, std::int64_t column) const { return doubtful.at(index(layer, column)); }

 private:
  std::size_t index(std::size_t layer, std::int64_t column) const {
    return layer * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column);
  }
};

/// A map for each site and value of interventions on one head of a layer, over all positions, if there are at least two
/// of them. A cell is the change of the loss, or of the logit difference if it was asked for.
std::vector<EffectMap> head_maps(const InterventionEffects& effects);

/// A map for each site of one direction: normalised, or the metric itself where nothing can be normalised.
std::vector<EffectMap> patch_maps(const PatchingEffects& effects, const DirectionResult& direction);

}  // namespace gainlens::analyses
