#include "analyses/checks/check.h"

#include "core/counted.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gainlens::analyses {

CheckOutcome satisfactory(std::string finding) {
  return {std::move(finding), {}, true};
}

std::string all_are(std::int64_t count, std::string_view noun) {
  return count == 1 ? "the only " + std::string(noun) + " is" : "all " + counted_are(count, noun);
}

CheckOutcome not_known(std::string what) {
  return {std::move(what), {}, false};
}

CheckOutcome not_known(std::string_view what, std::string_view why) {
  return not_known(fmt::format("{}{} {}", what, why.ends_with('.') ? '.' : ';', why));
}

std::string check_line(const CheckResult& result) {
  return (!result.ok ? "found: " : result.known ? "satisfactory: " : "not known: ") + result.finding;
}

std::size_t count_findings(std::span<const CheckResult> results) {
  return static_cast<std::size_t>(std::ranges::count_if(results, [](const CheckResult& result) { return !result.ok; }));
}

OrderedJson to_json(std::span<const CheckResult> results) {
  OrderedJson checks = OrderedJson::array();
  for (const CheckResult& result : results) {
    checks.push_back({{"name", result.name},
                      {"ok", result.ok},
                      {"known", result.known},
                      {"finding", result.finding},
                      {"advice", result.advice}});
  }
  return {{"checks", std::move(checks)}};
}

}  // namespace gainlens::analyses
