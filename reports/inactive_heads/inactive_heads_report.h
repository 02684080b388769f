#pragma once

#include "analyses/inactive_heads.h"
#include "reports/figures/figure.h"
#include "reports/made_report.h"

#include <filesystem>
#include <string>

namespace gainlens::reports {

/// The change of the loss against the share of heads that are set to zero: by the best score of the literature, by that
/// of the filter, and by random heads.
Figure inactive_heads_figure(const analyses::InactiveHeads& result);

/// Writes the report of `gainlens inactive-heads --report` into `out`: see write_files().
/// @param of  what was measured: "16 documents of 512 tokens"
/// @throws InvalidArgument, RunFailed  see write_files()
WrittenReport write_inactive_heads_report(const analyses::InactiveHeads& result, const std::string& of,
                                          const std::filesystem::path& out);

}  // namespace gainlens::reports
