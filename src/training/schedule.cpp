#include "training/schedule.h"

#include "core/error.h"
#include "core/nearest.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

namespace gainlens::training {

Decay parse_decay(std::string_view name) {
  if (name == "constant") return Decay::constant;
  if (name == "cosine") return Decay::cosine;
  const std::string shown = printable(name, 40);
  throw_invalid("schedule: '{}'; must be constant or cosine{}", shown,
                did_you_mean(shown, std::vector<std::string>{"constant", "cosine"}));
}

double learning_rate_factor(const Schedule& schedule, std::int64_t step) {
  if (step < schedule.warmup_steps)
    return static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps + 1);
  if (schedule.decay == Decay::constant) return 1;
  const std::int64_t decaying = std::max<std::int64_t>(1, schedule.total_steps - 1 - schedule.warmup_steps);
  const double progress =
      std::min(1.0, static_cast<double>(step - schedule.warmup_steps) / static_cast<double>(decaying));
  return schedule.final_factor + (1 - schedule.final_factor) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

}  // namespace gainlens::training
