#pragma once

#include "analyses/equivalence.h"
#include "analyses/seed_comparison.h"
#include "reports/measured.h"

#include <string>

/// How the scores of experiments are written, for a terminal and on pages.
namespace gainlens::reports {

/// "F1" for "f1", "exact match" for "exact_match"; another score keeps its name.
std::string score_title(const std::string& name);
/// "0.44712"
std::string score_number(double value);
/// "0.44712 (0.036)", with the deviation over seeds; "-" stands for a missing one.
std::string score_number(const analyses::ArmSummary& arm);
/// "+0.0123"
std::string score_change(double value);
/// "-0.01 to +0.04"
std::string score_interval(const Interval& ends);
/// "0.0123"; a dash if it is missing.
std::string p_on_page(const Measured& p);
/// "equivalent within ±0.1: p 0.0123, 90% -0.01 to +0.04"
std::string equivalence_in_words(const analyses::Equivalence& equivalence);

}  // namespace gainlens::reports
