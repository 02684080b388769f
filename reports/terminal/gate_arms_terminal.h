#pragma once

#include "analyses/gate_arm_effects.h"

#include <string>

namespace gainlens::reports {

/// The arms as tables, with the calibration before and the ruling after them.
/// @param of  "the last 256 tokens of 30 documents; ..": what was measured
std::string print_gate_arms(const analyses::GateArmEffects& effects, const std::string& of);

}  // namespace gainlens::reports
