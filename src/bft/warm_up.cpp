#include "bft/warm_up.h"

#include <fmt/format.h>

#include <algorithm>

namespace gainlens::bft {

double share_at(const FilterOptions& options, std::int64_t step, std::int64_t epoch) {
  const auto unit = static_cast<double>(options.warm_up_unit == WarmUpUnit::epochs ? epoch : 1);
  const double steps = static_cast<double>(options.warm_up) * unit;
  if (static_cast<double>(step) >= steps) return 1;
  if (options.warm_up_form == WarmUp::step) return 0;
  return static_cast<double>(step) / steps;
}

std::string why_never_in_force(const FilterOptions& options, std::int64_t steps, std::int64_t epoch) {
  if (share_at(options, steps - 1, epoch) > 0) return {};
  const bool in_epochs = options.warm_up_unit == WarmUpUnit::epochs;
  return fmt::format("its warm-up takes {} {} (--warm-up), and the training has {}", options.warm_up,
                     in_epochs ? "epochs" : "steps", in_epochs ? steps / epoch : steps);
}

double running_memory(std::int64_t seen) {
  constexpr double most = 0.99;
  const auto batches = static_cast<double>(seen);
  return std::min(most, batches / (batches + 1));
}

}  // namespace gainlens::bft
