#include "analyses/checks/check.h"

#include <algorithm>

namespace gainlens::analyses {

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
