#pragma once

#include "recommend/settings.h"
#include "recommend/variants.h"

#include <string>
#include <vector>

namespace gainlens::cli {

/// What --grid asks for: variants of a run that each change one setting.
struct Grid {
  std::vector<recommend::Variant> variants;  ///< named KEY-VALUE, the value in the fewest characters
  std::vector<std::string> own_settings;     ///< "initial_gain 0.9": what is the run's own setting, and so no variant
};

/// @param texts  each "KEY=VALUE,VALUE,...", or "paper": the seven knobs of the paper over their design range
/// @param arms   to be trained
/// @param run    the settings without a variant
/// Source: bft.tex, appendix ablations, for the knobs; it does not print their settings.
/// @throws InvalidArgument  another form; an unknown key (nearest match named); a value of the wrong type or out of
///     range; a setting that stands twice; a setting that an arm does not read
Grid parse_grid(const std::vector<std::string>& texts, const std::vector<std::string>& arms,
                const recommend::Settings& run);

}  // namespace gainlens::cli
