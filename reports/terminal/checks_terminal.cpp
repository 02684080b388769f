#include "reports/terminal/checks_terminal.h"

#include "core/counted.h"
#include "core/terminal_text.h"

#include <fmt/format.h>

namespace gainlens::reports {

std::string print_checks(std::span<const analyses::CheckResult> results) {
  std::string text;
  for (const analyses::CheckResult& result : results) {
    const std::string line = result.ok ? fmt::format("satisfactory: {}", result.finding)
                                       : fmt::format("found: {}. To do: {}", result.finding, result.advice);
    text += fmt::format("{:<12} {}\n", result.name, terminal_line(line));
  }
  const std::size_t found = analyses::count_findings(results);
  const std::string all = counted(results.size(), "check");
  return text + (found == 0 ? fmt::format("{}: all satisfactory\n", all)
                            : fmt::format("{}: {} found something\n", all, found));
}

}  // namespace gainlens::reports
