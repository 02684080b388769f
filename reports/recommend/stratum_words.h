#pragma once

#include "analyses/recommender_comparison.h"

#include <cstddef>
#include <string>

namespace gainlens::reports {

/// What the strata group users by: "by item frequency".
std::string stratum_heading(analyses::StratumKind kind);
/// How the strata are made, and what the columns of their composition say: sentences for a caption.
std::string stratum_rule(const analyses::StratifiedUsers& users);
/// "1 rarest", "2", "5 popular"
std::string stratum_name(const analyses::StratifiedUsers& users, std::size_t stratum);
/// "1 rarest: at most 4", "2: 4 to 6", "5 popular: 15 or more".
std::string stratum_label(const analyses::StratifiedUsers& users, std::size_t stratum);

/// What the correlation between known items and target count means; empty if there is none.
std::string correlation_sentence(double correlation);

}  // namespace gainlens::reports
