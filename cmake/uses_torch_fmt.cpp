// Formats texts and numbers: links if torch_fmt.cpp holds what the headers of this libtorch's fmt leave out.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

int main(int count, char** texts) {
  const std::vector<double> numbers(static_cast<std::size_t>(count), 1.5);
  const std::string text = fmt::format("{} {:.3g} {:L} {:>8} {}", texts[0], numbers[0], count, "x",
                                       fmt::join(numbers, ", "));
  return text.empty() ? 1 : 0;
}
