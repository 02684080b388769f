#pragma once

#include "analyses/crossed_estimate.h"
#include "reports/figures/figure.h"

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::reports {

/// What the line of a change is: its number of seeds decides.
enum class ForestLine {
  stated,      ///< 95% over seeds and units
  range,       ///< of two seeds, without a level
  units_alone  ///< 95% over the units of one seed
};

/// One change, in the unit of the axis.
struct ForestRow {
  std::size_t style;  ///< of the candidate (palette.h)
  double value;
  Interval ends;
  ForestLine line;
  Maybe<Interval> naive;  ///< 95% over seeds alone
};

/// @param on_axis  a number of the estimate in the unit of the axis; increasing
/// @param naive    in the unit of the axis
/// Missing with the reason of the estimate.
Maybe<ForestRow> forest_row(std::size_t style, const Maybe<analyses::CrossedEstimate>& estimate, Maybe<Interval> naive,
                            const std::function<double(double)>& on_axis);

/// What tells comparisons apart: the candidate, the data set, or both, cut to what fits.
/// @param comparisons  (candidate, data set) of each, as they are shown
/// @param splits       number of different splits
std::vector<std::string> forest_names(const std::vector<std::pair<std::string, std::string>>& comparisons,
                                      std::size_t splits);

/// Changes with their intervals, in groups by metric or score.
struct Forest {
  std::vector<std::string> groups;                  ///< titles
  std::vector<std::string> names;                   ///< [comparison]
  std::vector<std::vector<Maybe<ForestRow>>> rows;  ///< [group][comparison]
  std::string axis;                                 ///< its title
  std::string unit;                                 ///< what a unit is called: "user"
  std::function<std::string(double)> number;        ///< how a change beyond the axis is written
  /// The axis holds 0 and the intervals of the comparisons that reach at most so many times as far as the smallest one.
  double max_reaches = 6;
};

/// Every change with its interval over seeds and units, and the naive interval over seeds alone beside it: a row for
/// each comparison. What has no level is drawn in another way: a range of two seeds dashed, an interval over the units
/// of one seed dotted, both with a hollow marker. A candidate whose changes are much larger than those of another one
/// is marked at the edge with its number, so that the small ones can be seen. Missing without any change, and where the
/// rows or arms are too many to be told apart.
/// @param forest  at least one group and one comparison
/// @param name    stem of its files
Maybe<Figure> forest_figure(const Forest& forest, const std::string& name);

/// Its caption's sentences on the lines that are drawn.
std::string forest_lines_in_words(const Forest& forest);

}  // namespace gainlens::reports
