#pragma once

#include "analyses/cells.h"
#include "analyses/equivalence.h"
#include "analyses/gain_model.h"
#include "analyses/measured.h"
#include "analyses/options.h"
#include "analyses/selection.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gainlens::analyses {

inline constexpr double paper_theory_error =
    0.0028;  ///< largest error that the paper reports, relative to K; source: bft.tex, Fig. K-theory-measured
inline constexpr std::size_t min_theory_chunks = 3;  ///< the level of the test was not simulated for fewer

/// The error of the formula at one length above the shortest: K_opt / K - 1, for the means of unlimited text of this
/// kind.
struct TheoryError {
  std::int64_t tokens;
  double error;           ///< estimate; above 0 if the formula predicts too large a K
  Interval interval;      ///< 90% interval of the error
  Equivalence log_ratio;  ///< test of ln(K_opt / K) against +-ln(1 + margin)
  double constant_error;  ///< K(T_min) / K - 1 from the run's means: the error of a constant K
};

/// Errors on chunks that were left out of the fit: lambda from all other chunks predicts this chunk. Means over chunks.
struct LeftOutErrors {
  double relative;  ///< mean over chunks of the largest |K_opt - K| / K over lengths
  double constant;  ///< the same for the constant, the chunk's own K(T_min)
  Measured skill;   ///< 1 - mean error / mean error of the constant, over chunks and lengths
};

/// Is the error of the formula on text of this kind within a margin? A jackknife: chunks are left out one at a time, at
/// all lengths together. theta = ln(K_opt / K) gives n pseudo-values n theta - (n - 1) theta_without_i, which vary as
/// the chunks do and include the uncertainty of lambda. Student's t is applied to them. Level and power with 3 to 20
/// chunks: docs/analyses/gain-theory.md.
struct TheoryEquivalence {
  double margin;                     ///< the error counts as none if K_opt / K lies within a factor of 1 + margin
  std::int64_t chunks;               ///< number of chunks that every length has
  std::vector<TheoryError> lengths;  ///< those above the shortest, in order
  LeftOutErrors left_out;

  const TheoryError& worst() const;  ///< the length with the largest |error|
};

/// @param values  [length][chunk], shortest length first; the same chunks at every length
/// @param tokens  [length]
/// Missing with one length, with fewer than `min_theory_chunks`, if a fit does not have 0 < K < 1, or if the error is
/// the same in every chunk up to rounding.
/// Source: docs/inference.md, "K theory v. measured"; Tukey 1958.
Maybe<TheoryEquivalence> test_theory(const std::vector<std::vector<GainMeans>>& values,
                                     const std::vector<std::int64_t>& tokens, double prior_variance, double margin);

/// The test of a run: means over its deep heads, for the chunks that are complete at every length.
Maybe<TheoryEquivalence> theory_equivalence(const runfile::RunReader& reader, const Options& options);

OrderedJson to_json(const TheoryEquivalence& test);

/// The gain theory for one head, with its own K, n_eff and S over all chunks, and its own lambda.
struct CellError {
  std::int64_t layer;  ///< the model's own number
  std::int64_t head;
  double max_relative_error;
  double max_constant_error;
};

/// The gain theory head by head, over the deep layers: the mean over heads may hide differences.
struct CellErrors {
  std::vector<CellError> cells;  ///< layer by layer
  std::size_t left_out;          ///< number of heads without a lambda, or without a value at some length
  double median_error;
  double median_constant_error;
  CellError worst;
  std::size_t better_than_constant;  ///< number of heads whose largest error is below that of the constant
};

/// Missing with one length, or if no head has a fit.
Maybe<CellErrors> cell_errors(const runfile::RunReader& reader, const Options& options);

OrderedJson to_json(const CellErrors& errors);

/// One context length of the theory figure.
struct GainTheoryPoint {
  Length length;
  Maybe<Aggregate> n_eff;
  Maybe<Aggregate> residual;            ///< S, squared unit of the values
  Maybe<Aggregate> kalman_gain;         ///< K as measured at lambda = 1
  Maybe<Aggregate> kalman_gain_scaled;  ///< K of values scaled to unit variance: not predicted, shown because K has no
                                        ///< scale of its own
  Maybe<Aggregate> observation_precision;  ///< mean of lambda_obs, which is not aggregated_precision
  Measured aggregated_precision;           ///< lambda*(T) = (n_eff + nu) / (S + nu sigma0^2) from the mean n_eff and S
  Measured predicted_gain;                 ///< K_opt(T) = lambda* / (lambda + lambda*)
  Measured relative_error;                 ///< |K_opt - K| / K; missing at T_min, where the fit makes it 0
  Measured constant_error;                 ///< |K(T_min) - K| / K: the error of a constant K
  Measured skill;                          ///< 1 - relative_error / constant_error: above 0 if better than the constant
};

/// Does K follow from n_eff and S? One lambda is fitted at the shortest length and predicts the mean K at the others.
/// Here it is fitted and judged on the same chunks; theory_equivalence() tests the error on unseen text, and
/// cell_errors() judges head by head.
struct GainTheory {
  std::vector<std::int64_t> deep_layers;  ///< the model's own numbers
  double prior_strength;                  ///< nu, in observations
  double prior_variance;                  ///< sigma0^2 = 1 / head_dim
  Measured prior_precision;               ///< the fitted lambda
  Measured max_relative_error;
  Measured max_constant_error;
  Measured skill;                       ///< 1 - mean relative error / mean constant error, over lengths above T_min
  std::vector<GainTheoryPoint> points;  ///< shortest first
  double margin;                        ///< largest error that still counts as none, relative to K
  Maybe<TheoryEquivalence> unseen;      ///< test of the error on unseen text of this kind against the margin
  Maybe<CellErrors> cells;              ///< each deep head with its own K, n_eff and S
};

/// Source: bft.tex, Eq. reml and Fig. K-theory-measured; docs/method.md, "Gain theory".
/// @throws InvalidArgument  see deep_layers() and usable_lengths()
GainTheory gain_theory(const runfile::RunReader& reader, const Options& options = {});
OrderedJson to_json(const GainTheory& theory);

}  // namespace gainlens::analyses
