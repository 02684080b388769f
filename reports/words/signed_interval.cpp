#include "reports/words/signed_interval.h"

#include <fmt/format.h>

namespace gainlens::reports {

std::string with_signed_interval(const Measured& value, const Maybe<Interval>& interval) {
  if (!value) return "–";
  return fmt::format("{:+.3f} {}", *value,
                     interval ? fmt::format("[{:+.3f}, {:+.3f}]", interval->low, interval->high) : "–");
}

}  // namespace gainlens::reports
