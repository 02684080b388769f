#include "bft/arm.h"

#include <algorithm>

namespace gainlens::bft {

const std::vector<ArmParts>& all_arms() {
  static const std::vector<ArmParts> arms = {
      {.arm = Arm::plain, .name = "plain", .help = "the backbone itself"},
      {.arm = Arm::bft,
       .name = "bft",
       .help = "the backbone as a Bayesian filter",
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

const ArmParts* find_arm(std::string_view name) {
  const auto& arms = all_arms();
  const auto found = std::find_if(arms.begin(), arms.end(), [&](const ArmParts& parts) { return parts.name == name; });
  return found == arms.end() ? nullptr : &*found;
}

}  // namespace gainlens::bft
