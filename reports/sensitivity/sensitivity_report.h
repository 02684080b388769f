#pragma once

#include "analyses/sensitivity.h"
#include "reports/figures/figure.h"
#include "reports/made_report.h"

#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::reports {

/// Which knobs a figure shows.
enum class KnobGroup {
  flat,     ///< those that the paper calls flat
  tunable,  ///< those that it calls worth tuning
  other     ///< those that it does not name
};

/// "sensitivity-flat", "sensitivity-tunable", "sensitivity-other": the stem of its files.
std::string figure_name(KnobGroup group);

/// The metric against the settings of each knob of a group: a panel for each knob.
/// Missing if the group has no knob, or more than fit one figure.
Maybe<Figure> sensitivity_figure(const analyses::Sensitivity& sensitivity, KnobGroup group);

/// Writes the report of `gainlens sensitivity` into `out`: see write_files().
/// @param notes  sentences for the head of the page
/// @throws InvalidArgument, RunFailed  see write_files()
WrittenReport write_sensitivity_report(const analyses::Sensitivity& sensitivity, const std::filesystem::path& out,
                                       const std::vector<std::string>& notes = {});

}  // namespace gainlens::reports
