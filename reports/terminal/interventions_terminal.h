#pragma once

#include "analyses/attributions.h"
#include "analyses/intervention_effects.h"
#include "analyses/patching_effects.h"
#include "reports/page/csv_table.h"
#include "reports/words/facts.h"

#include <span>
#include <string>
#include <vector>

namespace gainlens::reports {

/// "[+0.0123, +0.0456]", a dash, or "changes nothing".
std::string change_interval(const analyses::ArmEffect& arm);

/// What the writes changed, and the model as it is.
std::vector<Fact> interventions_facts(const analyses::InterventionEffects& effects, const std::string& of);

/// The effects as a table. The first lines say what the writes changed.
/// @param of  "4 documents of 1024 tokens": what was measured
std::string print_interventions(const analyses::InterventionEffects& effects, const std::string& of);

/// The largest estimates as a table. Before it stands how well estimates of each kind order the exact changes.
/// @param number  what changes: "mean loss in nats"
std::string print_attributions(const analyses::Attributions& attributions, const std::string& number);

/// Estimates of a text, or of one direction of two prompts.
struct NamedAttributions {
  std::string direction;  ///< "denoising"; of a text: ""
  analyses::Attributions estimates;
};

/// All estimates, in the order of the interventions.
CsvTable attributions_table(std::span<const NamedAttributions> all);

/// What the patches changed, the prompts and their metrics.
std::vector<Fact> patching_facts(const analyses::PatchingEffects& effects);

/// Patching as maps of layers by positions and by heads; maps that are wider than a terminal by their strongest cells.
/// @param bos  what stands before the prompts
std::string print_patching(const analyses::PatchingEffects& effects, const std::string& bos);

/// patching.csv: a row for each direction and patch.
CsvTable patching_table(const analyses::PatchingEffects& effects);

}  // namespace gainlens::reports
