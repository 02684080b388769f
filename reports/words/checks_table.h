#pragma once

#include "analyses/checks/check.h"
#include "reports/page/paper_table.h"

#include <span>

namespace gainlens::reports {

/// The table "checks" of a page, with a row for each check.
PaperTable checks_table(std::span<const analyses::CheckResult> results = {});

}  // namespace gainlens::reports
