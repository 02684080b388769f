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

/// The names of the arms that are trained, then popularity and markov: baselines without training, for scale.
inline const std::vector<std::string>& arm_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const ArmParts& parts : all_arms()) found.emplace_back(parts.name);
    found.insert(found.end(), {"popularity", "markov"});
    return found;
  }();
  return names;
}

}  // namespace gainlens::recommend
