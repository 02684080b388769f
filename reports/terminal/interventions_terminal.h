#pragma once

#include "analyses/intervention_effects.h"

#include <string>

namespace gainlens::reports {

/// The effects as a table. The first lines say what the writes changed.
/// @param of  "4 documents of 1024 tokens": what was measured
std::string print_interventions(const analyses::InterventionEffects& effects, const std::string& of);

}  // namespace gainlens::reports
