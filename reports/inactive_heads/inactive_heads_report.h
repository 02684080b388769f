#pragma once

#include "analyses/inactive_heads.h"
#include "reports/figures/figure.h"
#include "reports/made_report.h"
#include "reports/words/facts.h"

#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::reports {

/// The change of the loss against the share of heads that are set to zero: by the best score of the literature, by that
/// of the filter, and by random heads.
Figure inactive_heads_figure(const analyses::InactiveHeads& result);

/// Writes the report of `gainlens inactive-heads --report` into `out`: see write_files().
/// @param of  what was measured: "16 documents of 512 tokens"
/// @throws InvalidArgument, RunFailed  see write_files()
WrittenReport write_inactive_heads_report(const analyses::InactiveHeads& result, const std::string& of,
                                          const std::filesystem::path& out);

/// What was measured, and what random heads cost.
/// @param of  "16 documents of 512 tokens"
std::vector<Fact> inactive_heads_facts(const analyses::InactiveHeads& result, const std::string& of);

/// The best score of the filter against the best of the literature; empty without one of them.
std::vector<std::string> best_scores(const analyses::InactiveHeads& result);

/// The result of `gainlens inactive-heads`. @param of  as above
std::string print_inactive_heads(const analyses::InactiveHeads& result, const std::string& of);

}  // namespace gainlens::reports
