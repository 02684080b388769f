#pragma once

#include "core/json.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// What one check found.
struct CheckResult {
  std::string name;     ///< of the check
  bool ok = true;       ///< whether nothing was found
  std::string finding;  ///< what is wrong and how much, or what was looked at and is satisfactory
  std::string advice;   ///< what to do; empty where all is satisfactory
  bool known = true;    ///< false: the run does not tell, and `finding` says what is not known and why
};

/// What a check says of its subject.
struct CheckOutcome {
  std::string finding;
  std::string advice;  ///< empty: satisfactory, or not known
  bool known = true;
};

/// What was looked at, and is satisfactory.
CheckOutcome satisfactory(std::string finding);
/// "the only chunk is", "all 3 chunks are".
std::string all_are(std::int64_t count, std::string_view noun);
/// What could not be looked at, and why. It is no finding.
CheckOutcome not_known(std::string what);
/// @param why  a clause, which follows a semicolon, or sentences, which follow a full stop
CheckOutcome not_known(std::string_view what, std::string_view why);

/// One of a fixed list of checks of a kind of run.
/// @tparam Subject  what is checked
template <typename Subject>
struct Check {
  std::string_view name;  ///< unique within the list; for programs
  std::string_view question;
  CheckOutcome (*look)(const Subject& subject);
};

/// Every check of a list, in its order.
template <typename Subject>
std::vector<CheckResult> run_checks(std::span<const Check<Subject>> checks, const Subject& subject) {
  std::vector<CheckResult> results;
  for (const Check<Subject>& check : checks) {
    CheckOutcome outcome = check.look(subject);
    const bool ok = outcome.advice.empty();
    results.push_back(
        {std::string(check.name), ok, std::move(outcome.finding), std::move(outcome.advice), outcome.known});
  }
  return results;
}

/// How many checks found something.
std::size_t count_findings(std::span<const CheckResult> results);
/// "satisfactory: ...", "not known: ..." or "found: ...".
std::string check_line(const CheckResult& result);

/// {"checks": [{"name", "ok", "known", "finding", "advice"}]}
OrderedJson to_json(std::span<const CheckResult> results);

}  // namespace gainlens::analyses
