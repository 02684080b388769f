#pragma once

#include <cstdint>
#include <string_view>

namespace gainlens::training {

/// How the learning rate goes on after its warm-up.
enum class Decay { constant, cosine };

/// @throws InvalidArgument  neither "constant" nor "cosine" (nearest match named)
Decay parse_decay(std::string_view name);

/// The learning rate over the steps, as a factor on its peak.
struct Schedule {
  Decay decay = Decay::cosine;
  std::int64_t warmup_steps = 0;  ///< steps of linear growth, from the factor 1 / (warmup_steps + 1)
  std::int64_t total_steps = 1;   ///< cosine: number of steps until the decay ends, warm-up included
  double final_factor = 0.1;      ///< cosine: factor at the last step
};

/// Factor of step 0, 1, ... During the warm-up it is (step + 1) / (warmup_steps + 1). After it, it is 1 (constant), or
/// follows half a cosine from 1 down to `final_factor` at the last step (cosine). Steps after the last have the factor
/// of the last.
double learning_rate_factor(const Schedule& schedule, std::int64_t step);

}  // namespace gainlens::training
