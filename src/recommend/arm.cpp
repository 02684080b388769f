#include "recommend/arm.h"

#include <algorithm>

namespace gainlens::recommend {

const std::vector<ArmParts>& all_arms() {
  static const std::vector<ArmParts> arms = {
      {.arm = Arm::plain, .name = "plain", .help = "SASRec"},
      {.arm = Arm::bft,
       .name = "bft",
       .help = "SASRec as a Bayesian filter",
       .output_projection = false,
       .precision_bias = true,
       .recency_decay = true,
       .factor = AttentionFactor::kalman_gain},
      {.arm = Arm::plain_no_wo,
       .name = "plain-no-wo",
       .help = "plain without the output projection",
       .output_projection = false},
      {.arm = Arm::plain_decay,
       .name = "plain-decay",
       .help = "plain with scores that fall with distance",
       .recency_decay = true},
      {.arm = Arm::plain_popularity,
       .name = "plain-popularity",
       .help = "plain with the precision of the items in the scores",
       .precision_bias = true},
      {.arm = Arm::gate,
       .name = "gate",
       .help = "bft with a learned gate instead of the gain",
       .output_projection = false,
       .recency_decay = true,
       .factor = AttentionFactor::gate},
      {.arm = Arm::constant_k,
       .name = "constant-k",
       .help = "bft with a learned constant gain",
       .output_projection = false,
       .recency_decay = true,
       .factor = AttentionFactor::constant},
  };
  return arms;
}

const ArmParts& parts_of(Arm arm) {
  return all_arms().at(static_cast<std::size_t>(arm));
}

std::string_view name_of(Arm arm) {
  return parts_of(arm).name;
}

const std::vector<std::string>& arm_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const ArmParts& parts : all_arms()) found.emplace_back(parts.name);
    found.insert(found.end(), {"popularity", "markov"});
    return found;
  }();
  return names;
}

const ArmParts* find_arm(std::string_view name) {
  const auto& arms = all_arms();
  const auto found = std::find_if(arms.begin(), arms.end(), [&](const ArmParts& parts) { return parts.name == name; });
  return found == arms.end() ? nullptr : &*found;
}

}  // namespace gainlens::recommend
