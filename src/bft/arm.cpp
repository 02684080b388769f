#include "bft/arm.h"

#include <algorithm>
#include <initializer_list>

namespace gainlens::bft {
namespace {

bool is_one_of(std::string_view key, std::initializer_list<std::string_view> keys) {
  return std::ranges::find(keys, key) != keys.end();
}

/// Whether a model of the arm depends on the option at all. tests/recommend/idle_settings_test.cpp trains each arm with
/// each option.
bool reads(Arm arm, std::string_view key) {
  switch (arm) {
    case Arm::bft:
    case Arm::textbook:
    case Arm::least_error:
      return true;
    case Arm::plain:
    case Arm::plain_no_wo:
    case Arm::ffn:
      return false;
    case Arm::plain_decay:
      return is_one_of(key, {"initial_decay", "decay_owner"});
    case Arm::plain_popularity:
      return is_one_of(key, {"initial_precision", "initial_gain", "initial_range", "least_precision", "most_precision",
                             "warm_up", "warm_up_unit", "warm_up_form"});
    case Arm::gate:
    case Arm::constant_k:
      return is_one_of(
          key, {"initial_gain", "recency_decay", "decay_owner", "initial_decay", "output_projection", "gain_place"});
  }
  return true;
}

/// Whether the option is about what happens to a precision between two layers.
bool is_of_predict(std::string_view key) {
  return is_one_of(key, {"predict", "jacobian", "jacobian_rank", "norm_jacobian", "running_jacobian", "discount",
                         "most_process_noise", "process_noise_start"});
}

}  // namespace

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
      {.arm = Arm::textbook,
       .name = "textbook",
       .help = "bft with the update of a Kalman filter, h + K (e - h)",
       .output_projection = false,
       .precision_bias = true,
       .recency_decay = true,
       .factor = AttentionFactor::kalman_gain,
       .update = StreamUpdate::correction},
      {.arm = Arm::least_error,
       .name = "least-error",
       .help = "bft with the gain of least expected error for h + K e",
       .output_projection = false,
       .precision_bias = true,
       .recency_decay = true,
       .factor = AttentionFactor::kalman_gain,
       .update = StreamUpdate::least_error},
      {.arm = Arm::ffn, .name = "ffn", .help = "plain with the MLP of bft, for a backbone without one"},
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

std::string why_idle(const Filter& filter, std::string_view key, std::int64_t layers) {
  if (!reads(filter.arm, key)) return fmt::format("arm {} does not read it", name_of(filter.arm));
  if (layers == 1 && is_of_predict(key)) return "'layers' is 1, and precisions are predicted between layers";
  // Elsewhere a gate or a constant starts from this gain, whatever the precision is; and plain-decay always has decay.
  const bool starts_a_gate = key == "initial_gain" && filter.arm != Arm::bft && !filter.has_initial_precision();
  const bool starts_a_decay = is_one_of(key, {"initial_decay", "decay_owner"}) && filter.arm == Arm::plain_decay;
  return starts_a_gate || starts_a_decay ? std::string() : why_idle(filter.options, key);
}

}  // namespace gainlens::bft
