#pragma once

#include "analyses/checks/check.h"

#include <span>
#include <string>

namespace gainlens::reports {

/// One line for each check, and how many found something: "windows   256 tokens: ...; do this".
std::string print_checks(std::span<const analyses::CheckResult> results);

}  // namespace gainlens::reports
