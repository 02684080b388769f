#include "cli/name_list.h"

#include "core/check.h"

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

}  // namespace gainlens::cli
