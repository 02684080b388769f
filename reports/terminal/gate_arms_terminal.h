#pragma once

#include "analyses/gate_arm_effects.h"
#include "reports/words/facts.h"

#include <string>
#include <vector>

namespace gainlens::reports {

/// What was measured, and how gates were calibrated.
/// @param of  what was measured
std::vector<Fact> gate_arms_facts(const analyses::GateArmEffects& effects, const std::string& of);

/// "prediction 3 (gain in the place of the gate): supported"
std::string gate_arms_ruling(const analyses::GateArmEffects& effects);

/// The result of `gainlens gate-arms`. @param of  what was measured
std::string print_gate_arms(const analyses::GateArmEffects& effects, const std::string& of);

}  // namespace gainlens::reports
