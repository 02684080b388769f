#pragma once

#include "kernels/query_fields.h"

#include <cstdint>
#include <limits>

// Vector code of the streaming kernel (Highway, chosen at run time for the machine). `Real` is float or double.

namespace gainlens::kernels {

/// Rows of scores and of dimensions are padded to a multiple of this many bytes, so that whole vectors can be read and written.
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

/// Scores s become cap tanh(s / cap).
template <typename Real>
void cap_scores(Real* scores, std::int64_t count, Real cap);

/// Takes one row of a tile of scores into the sums, and replaces it by its weights exp(s - maximum).
/// Where the maximum grows, `accumulators` [width] shrink with the sums.
///
/// @param scores   [padded columns]; [begin, end) are the visible ones, finite or -inf; what lies outside is overwritten with weight 0
/// @param columns  how many weights are wanted
template <typename Real>
void absorb_scores(SoftmaxSums& sums, Real* scores, std::int64_t begin, std::int64_t end, std::int64_t columns, Real* accumulators,
                   std::int64_t width);

/// Moments over the keys other than key 0, from the accumulators of p (v - c) and p (v - c)^2: e' - c and S' (never negative).
/// @param accumulators  [2, padded dims]   @param offset, residual  [padded dims]
template <typename Real>
void moments_of_others(const Real* accumulators, std::int64_t dims, Real inverse_total, Real* offset, Real* residual);

/// Rows [padded dims] of one query.
template <typename Real>
struct DimensionRows {
  const Real* centre;            ///< c
  const Real* first_offset;      ///< v_0 - c
  const Real* inverse_variance;  ///< 1 / sv^2, 0 where the values are all equal
  const Real* offset;            ///< e' - c, over the keys other than key 0
  const Real* residual_others;   ///< S'
  Real* estimate;                ///< out: e
  Real* residual;                ///< out: S
  Real* precision;               ///< out: lambda_obs
};

/// How a query's mass is split between key 0 and the others, without the sink.
struct MassSplit {
  double first;         ///< p_0
  double others;        ///< 1 - p_0, computed without cancellation
  double n_eff;         ///< over all keys
  double n_eff_others;  ///< over the others; NaN where there are none
};

struct GainPriors {
  double strength;   ///< nu
  double variance;   ///< sigma0^2
  double precision;  ///< lambda
};

/// Adds key 0 to the others, e = e' + p_0 (v_0 - e') and S = (1 - p_0)(S' + p_0 (v_0 - e')^2), both free of cancellation, and takes the
/// means over dimensions. Sets every field of `out` but the entropy.
template <typename Real>
void summarise_dimensions(const DimensionRows<Real>& rows, std::int64_t dims, const MassSplit& mass, const GainPriors& priors,
                          QueryScalars& out);

}  // namespace gainlens::kernels
