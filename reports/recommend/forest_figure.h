#pragma once

#include "analyses/measured.h"
#include "reports/figures/figure.h"
#include "reports/recommend/compared_arms.h"

#include <string>

namespace gainlens::reports {

/// The relative change of every metric with its interval over seeds and users, and the naive interval over seeds alone
/// beside it: a row for each comparison, in groups by metric. What has no level is drawn in another way: a range of two
/// seeds dashed, an interval over the users of one seed dotted, both with a hollow marker. A candidate whose changes
/// are much larger than those of another one is marked at the edge with its number, so that the small ones can be seen.
/// Missing without any change, and where the rows or arms are too many to be told apart.
/// @param name  stem of its files
analyses::Maybe<Figure> forest_figure(Comparisons comparisons, const std::string& name);

/// Its caption's sentences on what is drawn.
std::string forest_in_words(Comparisons comparisons);

}  // namespace gainlens::reports
