#pragma once

#include "analyses/crossed_estimate.h"
#include "analyses/paired_units.h"
#include "core/json.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// One coefficient of the regression.
struct GainSlope {
  std::string name;
  double value;
  double clustered_error;  ///< over users alone, of the mean over the runs: a jackknife that leaves out target items
  /// Of this error: the effective number of target items - 1. This number is 1 / sum of squares of the items' shares of
  /// the regressor's sum of squares.
  double clustered_degrees_of_freedom;
  Measured clustered_p;  ///< two-sided, Student; missing if nothing varies, or if one item has nearly all of the weight
  Maybe<CrossedEstimate> crossed;  ///< over seeds and target items
};

/// Ordinary least squares of the difference of each user, mean over the runs, on two numbers of the user. Users with
/// the same target item err together.
struct GainRegression {
  std::size_t users;
  std::size_t clusters;  ///< distinct target items
  GainSlope intercept;   ///< the mean difference: the regressors are centred
  GainSlope frequency;   ///< on ln(1 + training count of the target item); some targets are not in the training items
  GainSlope length;      ///< on ln(history length)
};

/// Differences are in units of the metric: where the baseline is higher, there is more to gain or to lose.
/// Missing if a regressor does not vary, if both are proportional, with fewer than four users or two target items.
/// Also missing if the users of all target items but one do not fix the coefficients.
/// Source: Cameron and Miller 2015 (clustered errors; the jackknife is their CR3); docs/inference.md, "Strata of
/// users".
/// @param frequency  [user] training count of the target item, at least 0
/// @param length     [user] number of known items, at least 1
/// @param target     [user] target item
Maybe<GainRegression> gain_regression(const PairedUnits& users, std::span<const std::int64_t> frequency,
                                      std::span<const std::int64_t> length, std::span<const std::size_t> target);

OrderedJson to_json(const GainRegression& regression);

}  // namespace gainlens::analyses
