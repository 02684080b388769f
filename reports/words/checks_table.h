#pragma once

#include "analyses/checks/check.h"
#include "reports/page/paper_table.h"

#include <span>
#include <string>

namespace gainlens::reports {

/// The table "checks" of a page, with a row for each check.
PaperTable checks_table(std::span<const analyses::CheckResult> results = {});

/// One line for each check, and how many found something: "windows   256 tokens: ...; do this".
std::string print_checks(std::span<const analyses::CheckResult> results);

}  // namespace gainlens::reports
