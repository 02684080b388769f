#include "analyses/options.h"

#include "analyses/permutation.h"
#include "core/check.h"

#include <cmath>
#include <string_view>
#include <utility>

namespace gainlens::analyses {

void check(const Options& options) {
  constexpr std::int64_t most = 10'000'000;  // more would cost hours and much memory, and make p hardly more precise
  constexpr std::int64_t fewest_permutations = 19;  // with fewer draws p cannot reach the level of significance
  static_assert(1.0 / (1 + fewest_permutations) <= significance && 1.0 / fewest_permutations > significance);
  const Resampling& r = options.resampling;
  CHECK(r.permutations >= fewest_permutations, "--permutations: {}; at least {} are needed to reach p = {:g}",
        r.permutations, fewest_permutations, significance);
  CHECK(r.permutations <= most, "--permutations: {}; {} to {} are allowed", r.permutations, fewest_permutations, most);
  CHECK(std::isfinite(options.equivalence_margin) && options.equivalence_margin > 0,
        "equivalence margin: {}; it must be positive and finite", options.equivalence_margin);
  CHECK(options.theory_margin > 0 && options.theory_margin < 1,
        "--theory-margin: {}; it is a share of K above 0 and below 1, such as 0.01 for 1%", options.theory_margin);
}

}  // namespace gainlens::analyses
