#include "reports/words/checks_table.h"

#include "core/counted.h"
#include "core/terminal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace gainlens::reports {
namespace {}  // namespace

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

PaperTable checks_table(std::span<const analyses::CheckResult> results) {
  PaperTable table{
      "checks",
      "What gainlens check looks for. A finding says what is wrong and how much. It does not change a number.",
      {{"check", true}, {"finding", true}, {"what to do", true}},
      {}};
  for (const analyses::CheckResult& result : results)
    table.rows.push_back({result.name, analyses::check_line(result), result.ok ? "nothing" : result.advice});
  return table;
}

}  // namespace gainlens::reports
