#include "analyses/checks/check.h"

#include <algorithm>
#include <utility>

namespace gainlens::analyses {

CheckOutcome satisfactory(std::string finding) {
  return {std::move(finding), {}};
}

std::size_t count_findings(std::span<const CheckResult> results) {
  return static_cast<std::size_t>(std::ranges::count_if(results, [](const CheckResult& result) { return !result.ok; }));
}

OrderedJson to_json(std::span<const CheckResult> results) {
  OrderedJson checks = OrderedJson::array();
  for (const CheckResult& result : results) {
    checks.push_back(
        {{"name", result.name}, {"ok", result.ok}, {"finding", result.finding}, {"advice", result.advice}});
  }
  return {{"checks", std::move(checks)}};
}

}  // namespace gainlens::analyses
