#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace gainlens::analyses {

/// Settings of the permutation tests.
struct Resampling {
  std::int64_t permutations = 9999;  ///< drawn per test; a test that has no more than this many tries all of them
  std::uint64_t seed = 0;
};

/// What a user may choose about the analyses of a sweep.
struct Options {
  std::optional<std::int64_t> deep_layers;  ///< number of last layers that count as deep; absent: a quarter, rounded up
  std::vector<std::int64_t> at;             ///< lengths, in tokens, of the sink analyses; empty: see sink_lengths()
  std::int64_t sinks = 20;                  ///< rows of the table of the strongest sink heads
  /// Largest change of logit(gate) or ln lambda_obs that still counts as flat. 0.1 changes the odds of a gate by about
  /// 10%, and is less than half of the change of ln lambda_obs in the paper, 0.25.
  double equivalence_margin = 0.1;
  /// Largest error of the gain theory, relative to K, that still counts as no error. The paper reports
  /// `paper_theory_error` (theory_equivalence.h).
  double theory_margin = 0.01;
  Resampling resampling;
};

/// @throws InvalidArgument  fewer than 19 permutations or more than 10 million, an equivalence margin that is not
/// positive and finite, a theory margin that is not between 0 and 1
void check(const Options& options);

}  // namespace gainlens::analyses
