#pragma once

#include "analyses/inactive_heads.h"
#include "reports/words/facts.h"

#include <string>
#include <vector>

namespace gainlens::reports {

/// What was measured, and what random heads cost.
/// @param of  "16 documents of 512 tokens"
std::vector<Fact> inactive_heads_facts(const analyses::InactiveHeads& result, const std::string& of);

/// The best score of the filter against the best of the literature; empty without one of them.
std::vector<std::string> best_scores(const analyses::InactiveHeads& result);

/// The result of `gainlens inactive-heads`. @param of  as above
std::string print_inactive_heads(const analyses::InactiveHeads& result, const std::string& of);

}  // namespace gainlens::reports
