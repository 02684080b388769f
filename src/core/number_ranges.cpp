#include "core/number_ranges.h"

#include <fmt/format.h>

#include <algorithm>

namespace gainlens {

template <std::integral Number>
std::string number_ranges(const std::vector<Number>& numbers, std::string_view to) {
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[first]);
    if (last > first) text += fmt::format("{}{}", last == first + 1 ? ", " : to, numbers[last]);
    first = last + 1;
  }
  return text;
}

std::string either_number(std::vector<std::int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::string text;
  for (std::size_t at = 0; at < numbers.size(); ++at) {
    const bool last = at + 1 == numbers.size();
    text += fmt::format("{}{}", at == 0 ? "" : last ? " or " : ", ", numbers[at]);
  }
  return text;
}

template std::string number_ranges(const std::vector<std::int64_t>&, std::string_view);
template std::string number_ranges(const std::vector<std::uint64_t>&, std::string_view);

}  // namespace gainlens
