#pragma once

#include <cstdint>
#include <string_view>

namespace gainlens::training {

/// What the learning rate does after its warm-up.
enum class Decay { constant, cosine };

/// @throws InvalidArgument  neither "constant" nor "cosine" (nearest match named)
Decay parse_decay(std::string_view name);

/// Course of the learning rate, as a factor on its peak.
struct Schedule {
  Decay decay = Decay::cosine;
  std::int64_t warmup_steps = 0;  ///< linear from peak / (warmup_steps + 1)
  std::int64_t total_steps = 1;   ///< cosine: where it ends
  double final_factor = 0.1;      ///< cosine: at the end
};

/// Factor of step 0, 1, ...: (step + 1) / (warmup_steps + 1) while warming up, then 1, or half a cosine from 1 to
/// `final_factor` at the last step. Steps beyond the last keep its factor.
double learning_rate_factor(const Schedule& schedule, std::int64_t step);

}  // namespace gainlens::training
