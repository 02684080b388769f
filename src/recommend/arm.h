#pragma once

#include "bft/arm.h"

#include <string>
#include <vector>

namespace gainlens::recommend {

using bft::all_arms;
using bft::Arm;
using bft::ArmParts;
using bft::AttentionFactor;
using bft::find_arm;
using bft::name_of;
using bft::parts_of;

/// Of the arms that are trained, then popularity and markov: baselines without training, for scale.
const std::vector<std::string>& arm_names();

}  // namespace gainlens::recommend
