#pragma once

#include "reports/figures/figure.h"
#include "reports/recommend/trained_run.h"

#include <string>

namespace gainlens::reports {

/// A metric of every arm by item frequency and by user activity: means over seeds, with bars that count seeds and
/// users. Missing if there are more arms than styles, or if all users are in one group of both kinds.
/// @param metric  position in RecommenderResults::metrics
/// @param name    stem of its files
Maybe<Figure> quintiles_figure(const analyses::RecommenderResults& results, std::size_t metric,
                               const std::string& name);

/// What the bars are, for the caption.
std::string quintile_bars_in_words(const analyses::RecommenderResults& results, std::size_t metric);

}  // namespace gainlens::reports
