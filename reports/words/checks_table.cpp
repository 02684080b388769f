#include "reports/words/checks_table.h"

namespace gainlens::reports {

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
