#include "reports/words/checks_table.h"

namespace gainlens::reports {

PaperTable checks_table() {
  return {"checks",
          "What gainlens check looks for. A finding says what is wrong and how much. It does not change a number.",
          {{"check", true}, {"finding", true}, {"what to do", true}},
          {}};
}

std::vector<std::vector<std::string>> checks_rows(std::span<const analyses::CheckResult> results) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(results.size());
  for (const analyses::CheckResult& result : results)
    rows.push_back({result.name, analyses::check_line(result), result.ok ? "nothing" : result.advice});
  return rows;
}

}  // namespace gainlens::reports
