#pragma once

#include "analyses/effect_map.h"
#include "analyses/intervention_effects.h"
#include "analyses/patching_effects.h"
#include "reports/figures/figure.h"
#include "reports/made_report.h"
#include "runfile/intervention_run.h"

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::reports {

/// What the report of a run of interventions is about.
struct MeasuredInterventions {
  const analyses::InterventionEffects* effects;
  std::string of;  ///< "4 documents of 512 tokens; BOS .."
  runfile::InterventionNames names = {};

  std::string label() const { return "interventions"; }
};

/// What the report of a run of activation patching is about.
struct MeasuredPatches {
  const analyses::PatchingEffects* effects;
  runfile::InterventionNames names = {};

  std::string label() const { return "patching"; }
};

/// The largest magnitude of the maps by heads, or of those by positions: they share their colours. A patch of one head
/// does less than one of the whole stream and would be pale in the colours of both.
double largest_effect(std::span<const analyses::EffectMap> maps, bool heads);

/// Effects by layer and by head or position: a panel for each map, in colours with 0 in their middle. Maps by heads
/// share their scale, and so do maps by positions.
/// Doubtful cells are hatched.
/// @param name      stem of its files
/// @param quantity  beside the colours: "change of the loss (nats)"
/// @param doubtful  what hatching means
Maybe<Figure> effect_map_figure(const std::string& name, std::span<const analyses::EffectMap> maps,
                                const std::string& quantity, const std::string& doubtful);

/// Writes the report of a run of interventions into `out`: see write_files().
WrittenReport write_interventions_report(const MeasuredInterventions& run, const std::filesystem::path& out,
                                         const Writing& writing = {});
/// The same for a run of activation patching.
WrittenReport write_patching_report(const MeasuredPatches& run, const std::filesystem::path& out,
                                    const Writing& writing = {});

}  // namespace gainlens::reports
