#pragma once

#include "reports/recommend/compared_arms.h"
#include "reports/section.h"

#include <span>

namespace gainlens::reports {

const Section<ComparedArms>& decisions_section();
const Section<ComparedArms>& gains_section();
const Section<ComparedArms>& learning_curves_section();
const Section<ComparedArms>& strata_section();
const Section<ComparedArms>& pooled_section();
const Section<ComparedArms>& reading_section();
/// The changes of the decisions as a map that the page's script shows.
const Section<ComparedArms>& compare_explorer_section();

/// Every section of a report of `gainlens compare`, in its order.
std::span<const Section<ComparedArms>* const> compare_sections();

}  // namespace gainlens::reports
