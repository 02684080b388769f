#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace gainlens::analyses {

/// How much is resampled, and from which seed.
struct Resampling {
  std::int64_t permutations = 9999;  ///< random arrangements of a permutation test; all of them where there are no more
  std::uint64_t seed = 0;
};

/// What a user may choose about the analyses of a sweep.
struct Options {
  std::optional<std::int64_t>
      deep_layers;  ///< how many of the run's last layers count as deep; absent: a quarter, rounded up
  std::vector<std::int64_t>
      at;  ///< lengths, in tokens, of the sink analyses; empty: 4k and 8k where present, else the two longest
  std::int64_t sinks = 20;  ///< rows of the table of the strongest sink heads
  /// Change of logit(gate) or ln lambda_obs that still counts as flat: 0.1 moves the odds of a gate by about 10%, less
  /// than half of the 0.25 by which the paper's own ln lambda_obs moves.
  double equivalence_margin = 0.1;
  /// Error of the gain theory, relative to K, that still counts as none. The paper reports 0.28% at most.
  double theory_margin = 0.01;
  Resampling resampling;
};

/// @throws InvalidArgument  fewer than 19 permutations or more than 10 million, an equivalence margin that is not
/// positive and finite, a theory margin that is not between 0 and 1
void check(const Options& options);

}  // namespace gainlens::analyses
