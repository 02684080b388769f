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
    0.0028;  ///< the largest error that the paper reports, of K; source: bft.tex, Fig. K-theory-measured
inline constexpr std::size_t least_theory_chunks =
    3;  ///< fewer give no spread to judge by that was ever checked by simulation

/// The formula's error at one length above the shortest: K_opt / K - 1 of the means that unlimited text of this kind
/// would have.
struct TheoryError {
  std::int64_t tokens;
  double error;           ///< estimate, above 0 where the formula predicts too much
  Interval interval;      ///< 90%: within a factor of 1 + margin, either way, where the error is shown to be
  Equivalence log_ratio;  ///< test of ln(K_opt / K) against +-ln(1 + margin)
  double constant_error;  ///< K(T_min) / K - 1, of the prediction that nothing changes; of the run's means
};

/// lambda fitted on all chunks but one, its prediction for that one; means over the chunks left out.
struct LeftOutErrors {
  double relative;  ///< mean over chunks of the largest |K_opt - K| / K over lengths
  double constant;  ///< the same of the chunk's own K(T_min)
  Measured skill;   ///< 1 - mean error / mean error of the constant, over chunks and lengths
};

/// Is the formula's error on text like this within a margin? Chunks are left out one by one, each at all lengths at
/// once. The n pseudo-values n theta - (n - 1) theta_without_i of theta = ln(K_opt / K) vary as the chunks do, lambda's
/// own uncertainty included, and Student's t is taken of them (jackknife). Level and power at 3 to 20 chunks:
/// docs/analyses/gain-theory.md.
struct TheoryEquivalence {
  double margin;                     ///< the error counts as none where K_opt / K lies within a factor of 1 + margin
  std::int64_t chunks;               ///< that every length has
  std::vector<TheoryError> lengths;  ///< those above the shortest, in order
  LeftOutErrors left_out;

  const TheoryError& worst() const;  ///< where |error| is largest
};

/// @param values  [length][chunk], shortest length first; the same chunks at every length
/// @param tokens  [length]
/// Missing with one length, below `least_theory_chunks`, or where a fit has no 0 < K < 1.
/// Source: inference.md, K theory v. measured; Tukey 1958.
Maybe<TheoryEquivalence> test_theory(const std::vector<std::vector<GainMeans>>& values,
                                     const std::vector<std::int64_t>& tokens, double prior_variance, double margin);

/// Of a run: means over its deep heads, chunks that are complete at every length.
Maybe<TheoryEquivalence> theory_equivalence(const runfile::RunReader& reader, const Options& options);

OrderedJson to_json(const TheoryEquivalence& test);

}  // namespace gainlens::analyses
