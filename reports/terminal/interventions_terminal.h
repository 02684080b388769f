#pragma once

#include "analyses/intervention_effects.h"

#include "reports/words/facts.h"

#include <string>
#include <vector>

namespace gainlens::reports {

/// What the writes changed, and the model as it is.
std::vector<Fact> interventions_facts(const analyses::InterventionEffects& effects, const std::string& of);

/// The effects as a table. The first lines say what the writes changed.
/// @param of  "4 documents of 1024 tokens": what was measured
std::string print_interventions(const analyses::InterventionEffects& effects, const std::string& of);

}  // namespace gainlens::reports
