#pragma once

#include "analyses/equivalence.h"
#include "analyses/gain_model.h"
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

}  // namespace gainlens::analyses
