#pragma once

#include "analyses/attributions.h"

#include <string>

namespace gainlens::reports {

/// Estimates as a table. The first line says how well they order the exact changes.
/// @param number  what changes: "mean loss in nats"
std::string print_attributions(const analyses::Attributions& attributions, const std::string& number);

}  // namespace gainlens::reports
