#pragma once

#include "analyses/audit.h"

#include <string>

namespace gainlens::reports {

/// The audit as text for a terminal, ended by a line break: the lemma's table of the heads with the strongest and the
/// least met bounds, or of every head, then the statements. For programs: analyses::to_json().
std::string print_audit(const analyses::Audit& audit, bool all_heads);

}  // namespace gainlens::reports
