#include "core/divergence.h"

#include "core/counted.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace gainlens {

std::string divergence(std::span<const double> losses, std::int64_t choices, const PredictionWords& words) {
  constexpr double min_rise = 1.1;
  if (losses.empty()) return {};
  const double first = losses.front(), last = losses.back();
  const double guessing =
      choices > 0 ? std::log(static_cast<double>(choices)) : std::numeric_limits<double>::infinity();
  if (!std::isfinite(last)) return fmt::format("its last training loss is {}", last);
  if (last > min_rise * first)
    return fmt::format("its last training loss is {:.4g}, above the {:.4g} {}", last, first, words.first);
  if (last > min_rise * guessing)
    return fmt::format("its last training loss is {:.4g}, above the {:.4g} of guessing evenly among {}", last, guessing,
                       counted(choices, words.choice));
  return {};
}

}  // namespace gainlens
