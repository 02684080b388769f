#include "core/device_name.h"

#include <charconv>
#include <limits>

namespace gainlens {

std::optional<int> device_number(std::string_view name) {
  constexpr std::string_view gpu = "cuda", numbered = "cuda:";
  if (name == "cpu") return -1;
  if (name == gpu) return 0;
  if (!name.starts_with(numbered)) return std::nullopt;
  name.remove_prefix(numbered.size());
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  // libtorch holds the number in 8 bits.
  const bool holds = number >= 0 && number <= std::numeric_limits<signed char>::max();
  if (error != std::errc() || end != name.data() + name.size() || name.front() == '-' || !holds) return std::nullopt;
  return number;
}

}  // namespace gainlens
