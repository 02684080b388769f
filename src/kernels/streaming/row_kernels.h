#pragma once

#include "kernels/query_fields.h"

#include <cstdint>
#include <limits>

// Vector code of the streaming kernel (Highway, chosen at run time for the machine). `Real` is float or double.

namespace gainlens::kernels {

/// Rows of scores and of dimensions are padded to a multiple of this many bytes, so that whole vectors can be read and
/// written.
inline constexpr std::int64_t row_alignment = 64;

/// `count` rounded up to whole aligned rows of Real.
template <typename Real>
constexpr std::int64_t padded(std::int64_t count) {
  constexpr std::int64_t lanes = row_alignment / static_cast<std::int64_t>(sizeof(Real));
  return (count + lanes - 1) / lanes * lanes;
}

/// Running softmax sums of one query, relative to the largest score so far.
struct SoftmaxSums {
  double maximum = -std::numeric_limits<double>::infinity();
  double total = 0;           ///< sum exp(s - maximum)
  double total_squares = 0;   ///< sum exp(2 (s - maximum))
  double weighted_score = 0;  ///< sum exp(s - maximum) (s - maximum)
};

/// Scores s of [begin, end) become cap tanh(s / cap); whole vectors around it are overwritten.
template <typename Real>
void cap_scores(Real* scores, std::int64_t begin, std::int64_t end, Real cap);

/// Takes one row of a tile of scores into the sums, and replaces it by its weights exp(s - maximum). Where the maximum
/// grows, `accumulators` [width] shrink with the sums; before a row's first key they are not looked at.
///
/// The exponential of float is within 2.5 units in the last place, exactly 1 at 0 and exactly 0 below -87.3 (where a
/// float's would be subnormal); that of double is Highway's.
///
/// @param scores   aligned; [begin, end) are the visible ones, finite or -inf
/// @param wanted_begin, wanted_end  where weights are wanted: 0 is written there outside of [begin, end)
template <typename Real>
void absorb_scores(SoftmaxSums& sums, Real* scores, std::int64_t begin, std::int64_t end, std::int64_t wanted_begin,
                   std::int64_t wanted_end, double* accumulators, std::int64_t width);

/// Masses share exp(score - log_total) of the first keys. @param scores, masses  [first_keys]
template <typename Real>
void masses_of_first(const Real* scores, double log_total, double share, double* masses);

/// Moments over the keys other than key 0, from the accumulators of p u and p u^2: their mean offset and S' (never
/// negative), formed in double.
/// @param accumulators  [2, width]   @param total  sum p; zeros where it is 0   @param offset, residual  [width]
template <typename Real>
void moments_of_others(const double* accumulators, std::int64_t width, double total, Real* offset, Real* residual);

/// The same from few keys: mean of `values` under `weights`, and S about it, in two passes; zeros where all weights are
/// zero.
/// @param weights  [keys] @param values [keys, width], relative to a value near their mean @param offset, residual
///     [width]
template <typename Real>
void two_pass_moments(const Real* weights, const Real* values, std::int64_t keys, std::int64_t width, Real* offset,
                      Real* residual);

/// Rows [padded dims] of one query. Offsets and S' are of u = (v - c) / unit, unit a power of two, so that their
/// squares neither vanish nor overflow.
template <typename Real>
struct DimensionRows {
  const Real* centre;            ///< c
  const Real* unit;              ///< in the values' own unit
  const Real* first_offset;      ///< (v_0 - c) / unit
  const Real* inverse_variance;  ///< unit^2 / sv^2, 0 where the values are all equal
  const Real* prior_precision;   ///< lambda
  const Real* offset;            ///< (e' - c) / unit, over the keys other than key 0
  const Real* residual_others;   ///< S' / unit^2
  Real size;                     ///< of the values, a power of two: norms are formed in it, so that no square vanishes
  Real* estimate;                ///< out: e
  Real* residual;                ///< out: S
  Real* precision;               ///< out: lambda_obs
};

/// How a query's mass is split between key 0 and the others, without the sink.
struct MassSplit {
  double first;         ///< p_0
  double others;        ///< 1 - p_0, not formed by subtraction
  double n_eff;         ///< over all keys
  double n_eff_others;  ///< over the others; NaN where there are none
};

struct GainPriors {
  double strength;  ///< nu
  double variance;  ///< sigma0^2
};

/// Which means over dimensions are computed.
enum class Summary {
  plain,                          ///< residual, observation precision and Kalman gain
  all_but_without_first_moments,  ///< what a sweep stores
  all,
};

/// Adds key 0 to the others, e = e' + p_0 (v_0 - e') and S = (1 - p_0)(S' + p_0 (v_0 - e')^2), where nothing cancels,
/// and takes the means over dimensions. Sets n_eff and the means of `out`.
template <typename Real>
void summarise_dimensions(Summary summary, const DimensionRows<Real>& rows, std::int64_t dims, const MassSplit& mass,
                          const GainPriors& priors, QueryScalars& out);

}  // namespace gainlens::kernels
