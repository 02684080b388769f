#include "cli/name_list.h"

#include "core/check.h"
#include "core/plain_text.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace gainlens::cli {

CLI::Option* add_name_list(CLI::App& command, const std::string& option, std::vector<std::string>& names,
                           const std::string& help) {
  const auto read = [option, &names](const std::vector<std::string>& given) {
    names.clear();
    for (const std::string& text : given) {
      for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        names.push_back(text.substr(begin, end - begin));
        CHECK(!names.back().empty(), "{}: '{}' holds an empty name; write names with one comma between two of them",
              option, printable(text, 60));
        CHECK(std::ranges::count(names, names.back()) == 1, "{}: '{}' is given twice", option,
              printable(names.back(), 60));
        begin = end + 1;
      }
    }
  };
  CLI::Option* added = command.add_option_function<std::vector<std::string>>(option, read, help);
  added->allow_extra_args(false);  // the words after it are other arguments
  if (!names.empty()) added->default_str(fmt::format("{}", fmt::join(names, ",")));
  return added;
}

std::vector<double> numbers_of(const std::vector<std::string>& texts, const std::string& option) {
  std::vector<double> numbers;
  numbers.reserve(texts.size());
  for (const std::string& text : texts) {
    const auto number = finite_number(text);
    CHECK(number, "{}: '{}' is no finite number", option, printable(text, 60));
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace gainlens::cli
