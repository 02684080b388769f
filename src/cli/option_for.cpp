#include "cli/option_for.h"

#include "core/check.h"

#include <algorithm>
#include <string>

namespace gainlens::cli {

void refuse_options(const CLI::App& command, std::span<const OptionFor> options,
                    std::span<const std::string_view> taken, std::string_view end) {
  for (const OptionFor& option : options)
    CHECK(std::ranges::find(taken, option.name) != taken.end() || command.count(std::string(option.name)) == 0,
          "{}: is for {}{}", option.name, option.takers, end);
}

}  // namespace gainlens::cli
