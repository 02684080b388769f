#pragma once

#include "analyses/sensitivity.h"

#include <string>

namespace gainlens::reports {

/// The result as a text table for a terminal, ended by a line break. For programs: analyses::to_json().
std::string print_sensitivity(const analyses::Sensitivity& sensitivity);

}  // namespace gainlens::reports
