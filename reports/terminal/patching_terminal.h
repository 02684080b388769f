#pragma once

#include "analyses/patching_effects.h"
#include "reports/page/csv_table.h"

#include "reports/words/facts.h"

#include <string>
#include <vector>

namespace gainlens::reports {

/// What the patches changed, the prompts and their metrics.
std::vector<Fact> patching_facts(const analyses::PatchingEffects& effects);

/// Patching as maps of layers by positions and by heads; maps that are wider than a terminal by their strongest cells.
/// @param bos  what stands before the prompts
std::string print_patching(const analyses::PatchingEffects& effects, const std::string& bos);

/// patching.csv: a row for each direction and patch.
CsvTable patching_table(const analyses::PatchingEffects& effects);

}  // namespace gainlens::reports
