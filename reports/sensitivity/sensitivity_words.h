#pragma once

#include "analyses/sensitivity.h"

#include <string>
#include <vector>

namespace gainlens::reports {

/// "K0 (initial_gain)", or the key alone where the paper has no symbol.
std::string knob_name(const analyses::KnobResult& knob);

/// Headings of setting_cells().
const std::vector<std::string>& setting_headings();
/// One setting: value, seeds, mean, standard deviation, change with its 95% interval, p, Holm's p, the smallest margin
/// within which it would be shown to be flat.
std::vector<std::string> setting_cells(const analyses::SettingResult& setting);
/// The reference in the same columns.
std::vector<std::string> reference_cells(const analyses::Sensitivity& sensitivity, const analyses::KnobResult& knob);

/// How far the seeds reach: what the median interval says of small changes.
std::string power_in_words(const analyses::Sensitivity& sensitivity);

/// The result as a text table for a terminal, ended by a line break. For programs: analyses::to_json().
std::string print_sensitivity(const analyses::Sensitivity& sensitivity);

}  // namespace gainlens::reports
