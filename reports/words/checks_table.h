#pragma once

#include "analyses/checks/check.h"
#include "reports/page/paper_table.h"

#include <span>
#include <string>
#include <vector>

namespace gainlens::reports {

/// The table "checks" of a page, without rows.
PaperTable checks_table();

/// A row for each check.
std::vector<std::vector<std::string>> checks_rows(std::span<const analyses::CheckResult> results);

}  // namespace gainlens::reports
