#pragma once

#include "reports/recommend/compared_arms.h"
#include "reports/section.h"

#include <span>

namespace gainlens::reports {

extern const Section<ComparedArms> decisions_section, gains_section, learning_curves_section, strata_section,
    pooled_section, reading_section;
/// The changes of the decisions as a map that the page's script shows.
extern const Section<ComparedArms> compare_explorer_section;

/// Every section of a report of `gainlens compare`, in its order.
std::span<const Section<ComparedArms>* const> compare_sections();

}  // namespace gainlens::reports
