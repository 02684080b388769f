#pragma once

#include "analyses/recommender_comparison.h"

#include <cstddef>
#include <string>

namespace gainlens::reports {

/// What the strata group users by: "by item frequency".
std::string stratum_heading(analyses::StratumKind kind);
/// "1 rarest: at most 4", "2: 4 to 6", "5 popular: 15 or more".
std::string stratum_label(const analyses::StratifiedGains& gains, std::size_t stratum);

}  // namespace gainlens::reports
