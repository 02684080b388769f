#pragma once

#include "kernels/fixed_sizes.h"
#include "kernels/row_alignment.h"
#include "kernels/scalar_values.h"

#include <cstdint>
#include <limits>

// Vector code of the streaming kernel (Highway, which chooses the instruction set at run time). `Real` is float or
// double. Neither this header nor panel_products.h needs libtorch: the Python package compiles both sources.

namespace gainlens::kernels {

/// Running softmax sums of one query, relative to the largest score so far.
struct SoftmaxSums {
  double maximum = -std::numeric_limits<double>::infinity();
  double total = 0;           ///< sum exp(s - maximum)
  double total_squares = 0;   ///< sum exp(2 (s - maximum))
  double weighted_score = 0;  ///< sum exp(s - maximum) (s - maximum)
};

/// Rows [padded dims] of one query. Offsets and S' are those of u = (v - c) / unit. Unit is a power of two, so that
/// squares neither underflow nor overflow.
template <typename Real>
struct DimensionRows {
  const Real* centre;            ///< c
  const Real* unit;              ///< in the values' own unit
  const Real* first_offset;      ///< (v_0 - c) / unit
  const Real* inverse_variance;  ///< unit^2 / sv^2, 0 if the values are all equal
  const Real* prior_precision;   ///< lambda
  const Real* offset;            ///< (e' - c) / unit, over the keys other than key 0
  const Real* residual_others;   ///< S' / unit^2
  Real size;        ///< of the values, a power of two: norms are computed in this unit, so that no square underflows
  Real* estimate;   ///< out: e
  Real* residual;   ///< out: S
  Real* precision;  ///< out: lambda_obs
};

/// How the mass of a query is split between key 0 and the others, without the sink.
struct MassSplit {
  double first;         ///< p_0
  double others;        ///< 1 - p_0, not computed by subtraction
  double n_eff;         ///< over all keys
  double n_eff_others;  ///< over the others; NaN if there are no others
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

/// The functions over rows, compiled for one instruction set.
template <typename Real>
struct RowKernels {
  /// Replaces the scores s of [begin, end) by cap tanh(s / cap). Elements around the range may be overwritten, up to
  /// whole vectors.
  void (*cap_scores)(Real* scores, std::int64_t begin, std::int64_t end, Real cap);

  /// Adds one row of a tile of scores to the sums, and replaces the scores by their weights exp(s - maximum). If the
  /// maximum grows, the sums and `accumulators` [width] are scaled down. Before the first key of a row, `accumulators`
  /// are not read.
  ///
  /// The exponential of float is within 2.5 units in the last place (64 without fused multiply-add, where the result is
  /// tiny). It is exactly 1 at 0 and exactly 0 below -87.3, where the true result would be subnormal. The exponential
  /// of double is that of Highway.
  ///
  /// @param scores                    aligned; [begin, end) are the visible ones, finite or -inf
  /// @param wanted_begin, wanted_end  where weights are wanted; 0 is written to elements outside of [begin, end)
  void (*absorb_scores)(SoftmaxSums& sums, Real* scores, std::int64_t begin, std::int64_t end,
                        std::int64_t wanted_begin, std::int64_t wanted_end, double* accumulators, std::int64_t width);

  /// Masses of the first keys: share exp(score - log_total).
  /// @param scores, masses  [first_keys]
  void (*masses_of_first)(const Real* scores, double log_total, double share, double* masses);

  /// sums += factor weights, over whole vectors around [begin, end).
  /// @param weights, sums  aligned; weights around the range, up to whole vectors, are 0
  void (*add_scaled)(const Real* weights, std::int64_t begin, std::int64_t end, Real factor, Real* sums);

  /// Scores of one key for `count` queries: factor q.k.
  /// @param key      [dims]
  /// @param queries  [count, dims]
  void (*scores_of_key)(const Real* key, Rows<const Real> queries, std::int64_t count, std::int64_t dims, Real factor,
                        Real* scores);

  /// sum exp(score - normaliser), in double. A score of -inf and a normaliser of +inf give 0.
  double (*sum_of_weights)(const Real* scores, const double* normalisers, std::int64_t count);

  /// Moments over the keys other than key 0, from the sums of p u and p u^2: the mean offset and S' (never negative),
  /// computed in double. Zero if `total` is 0.
  /// @param accumulators      [2, width]
  /// @param total             sum p
  /// @param offset, residual  [width]
  void (*moments_from_sums)(const double* accumulators, std::int64_t width, double total, Real* offset, Real* residual);

  /// The same from few keys: the mean of `values` under `weights`, and S about it, in two passes. Zero if all weights
  /// are zero.
  /// @param weights           [keys]
  /// @param values            [keys, width], relative to a value near their mean
  /// @param offset, residual  [width]
  void (*two_pass_moments)(const Real* weights, const Real* values, std::int64_t keys, std::int64_t width, Real* offset,
                           Real* residual);

  /// Adds key 0 to the others: e = e' + p_0 (v_0 - e') and S = (1 - p_0)(S' + p_0 (v_0 - e')^2). Nothing cancels in
  /// these forms. Then computes the means over dimensions. Sets n_eff and the means of `out`.
  void (*summarise_dimensions)(Summary summary, const DimensionRows<Real>& rows, std::int64_t dims,
                               const MassSplit& mass, const GainPriors& priors, QueryScalars& out);
};

/// The table for the best instruction set of this machine.
template <typename Real>
const RowKernels<Real>& row_kernels();

}  // namespace gainlens::kernels
