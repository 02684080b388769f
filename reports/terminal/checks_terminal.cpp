#include "reports/terminal/checks_terminal.h"

#include "core/counted.h"
#include "core/terminal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace gainlens::reports {

std::string print_checks(std::span<const analyses::CheckResult> results) {
  std::string text;
  for (const analyses::CheckResult& result : results) {
    const std::string to_do = result.ok ? std::string() : fmt::format(". To do: {}", result.advice);
    text += fmt::format("{:<12} {}\n", result.name, terminal_line(analyses::check_line(result) + to_do));
  }
  const std::size_t found = analyses::count_findings(results);
  const auto unknown = std::ranges::count_if(results, [](const auto& result) { return !result.known; });
  const std::string rest = unknown == 0 ? std::string() : fmt::format(", {} not known", unknown);
  const std::string all = counted(results.size(), "check");
  if (found > 0) return text + fmt::format("{}: {} found something{}\n", all, found, rest);
  return text + (unknown == 0 ? fmt::format("{}: all satisfactory\n", all)
                              : fmt::format("{}: {} satisfactory{}\n", all, std::ssize(results) - unknown, rest));
}

}  // namespace gainlens::reports
