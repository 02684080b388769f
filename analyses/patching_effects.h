#pragma once

#include "analyses/measured.h"
#include "core/json.h"
#include "runfile/patching_run.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// What one patch did.
struct PatchResult {
  runfile::PatchEffect effect;
  /// (metric - base) / (other - base): 0 is the run that was patched, 1 the run that the values come from. Missing:
  /// both runs have the same metric.
  Measured normalised;

  bool changes_nothing() const { return effect.largest_logit_change == 0; }
};

/// All patches of one direction.
struct DirectionResult {
  runfile::PatchDirection direction;
  double base;   ///< metric of the run that is patched
  double other;  ///< metric of the run that values come from
  std::vector<PatchResult> patches;
};

/// Patches of one site in all layers, by layer and by one index: a map.
struct PatchGrid {
  std::string site;  ///< "hook_resid_pre"
  bool heads;        ///< the index counts heads; else positions
  std::vector<std::int64_t> layers;
  std::int64_t columns;
  std::vector<std::optional<std::size_t>> cells;  ///< [layer, column] the place of the patch in the list

  std::optional<std::size_t> at(std::size_t layer, std::int64_t column) const {
    return cells.at(layer * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column));
  }
};

struct PatchingEffects {
  std::string metric;                                 ///< "logit_difference" or "kl_to_clean"
  std::string answer = {}, foil = {};                 ///< tokens, as people read them; of a logit difference
  std::vector<std::string> clean = {}, corrupt = {};  ///< [position] tokens, as people read them
  std::vector<runfile::Patch> patches;
  std::vector<DirectionResult> directions;
  std::vector<PatchGrid> grids;  ///< of patches of one head or one position

  /// "logit of ' Paris' minus logit of ' Rome'"
  std::string metric_words() const;
  double clean_metric() const { return directions.front().other; }
  double corrupt_metric() const { return directions.front().base; }
};

/// @throws InvalidArgument  the run's request lacks its prompts
PatchingEffects patching_effects(const runfile::PatchingRun& run);

/// {"metric": .., "clean": {"metric": .., "tokens": [..]}, "corrupt": .., "denoising": {"base": .., "patches": [..]},
/// ..}
OrderedJson to_json(const PatchingEffects& effects);

}  // namespace gainlens::analyses
