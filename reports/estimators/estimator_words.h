#pragma once

#include "analyses/estimator_truth.h"
#include "reports/measured.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace gainlens::reports {

/// "all", "none", "10 and more", "up to 20", "2 to 20", "all but 2, 5", or a list.
/// @param found  some of `grid`
/// @param grid   rising
std::string n_eff_in_words(std::span<const double> found, std::span<const double> grid);

/// Positions in the grid of at most four n_eff that stand in tables, evenly placed, without n_eff = 1.
std::vector<std::size_t> shown_positions(std::span<const double> grid);

/// "2", "1.5"
std::string n_eff_number(double n_eff);
/// "+12%", "0%", "×9.3" of a mean V above three times the true variance; a dash where it is missing.
std::string bias_number(const Measured& bias);
/// "95.2%"; a dash where it is missing.
std::string coverage_number(const Measured& coverage);
/// "0.31", "22"; a dash where it is missing.
std::string spread_number(const Measured& spread);
/// "REML, naive": names for readers; name_of() gives those of options.
std::string estimator_in_words(bft::Estimator estimator);
/// "unit variance"
std::string scenario_in_words(analyses::TruthScenario scenario);

/// The result as text tables for a terminal, ended by a line break. For programs: analyses::to_json().
std::string print_estimators(const analyses::EstimatorTruth& truth);

}  // namespace gainlens::reports
