#include "reports/words/numbers.h"

#include "core/error.h"

#include <fmt/format.h>

#include <cmath>

namespace gainlens::reports {
namespace {

constexpr const char* nothing = "–";

/// A minus that is as wide as a plus, where a number begins with a hyphen.
std::string with_minus(std::string text) {
  if (text.starts_with('-')) text.replace(0, 1, "−");
  return text;
}

}  // namespace

std::string layers_in_words(const std::vector<std::int64_t>& layers) {
  return (layers.size() == 1 ? "layer " : "layers ") + number_ranges(layers);
}

std::string with_signed_interval(const Measured& value, const Maybe<Interval>& interval) {
  if (!value) return "–";
  return fmt::format("{:+.3f} {}", *value,
                     interval ? fmt::format("[{:+.3f}, {:+.3f}]", interval->low, interval->high) : "–");
}

std::string shown(double number) {
  if (!std::isfinite(number)) return nothing;
  if (number == 0) return "0";
  const double size = std::abs(number);
  if (size >= 99.95 && size < 1e6) return with_minus(fmt::format("{:.0f}", number));  // 12345, not 1.23e+04
  return with_minus(fmt::format("{:#.3g}", number));                                  // keeps zeros: 0.800 is not 0.8
}

std::string shown(const Measured& value) {
  return value ? shown(*value) : nothing;
}

std::string shown_p(const Measured& p) {
  return p ? fmt::format("{:#.2g}", *p) : nothing;
}

std::string shown_signed(const Measured& value) {
  return value ? with_minus(fmt::format("{:+.3f}", *value)) : nothing;
}

std::string shown_percent(const Measured& share) {
  return share ? fmt::format("{:.2f}%", 100 * *share) : nothing;
}

std::string shown(const Maybe<Interval>& interval) {
  return interval ? fmt::format("[{}, {}]", shown(interval->low), shown(interval->high)) : "";
}

std::string with_interval(const std::string& value, const Maybe<Interval>& interval) {
  return interval ? fmt::format("{} {}", value, shown(interval)) : value;
}

std::string shown(const Maybe<analyses::Aggregate>& aggregate) {
  return aggregate ? with_interval(shown(aggregate->mean), aggregate->interval) : nothing;
}

std::string shown(const analyses::Change& change) {
  return change.mean ? with_interval(shown_signed(change.mean), change.interval) : nothing;
}

std::string short_checksum(const std::string& checksum) {
  return printable(checksum.substr(0, 12));
}

}  // namespace gainlens::reports
