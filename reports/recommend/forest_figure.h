#pragma once

#include "reports/figures/figure.h"
#include "reports/recommend/compared_arms.h"

#include <string>

namespace gainlens::reports {

/// The relative change of every metric in percent, as reports/comparison/forest.h draws it.
/// @param name  stem of its files
Maybe<Figure> forest_figure(Comparisons comparisons, const std::string& name);

/// Its caption's sentences on what is drawn.
std::string forest_in_words(Comparisons comparisons);

}  // namespace gainlens::reports
