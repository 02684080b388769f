#include "analyses/options.h"

#include "analyses/permutation.h"
#include "core/error.h"

#include <cmath>
#include <string_view>
#include <utility>

namespace gainlens::analyses {

void check(const Options& options) {
  constexpr std::int64_t most = 10'000'000;         // beyond, memory and hours go and no digit of a p comes
  constexpr std::int64_t fewest_permutations = 19;  // with fewer draws no p reaches the level, and every verdict would be a refusal
  static_assert(1.0 / (1 + fewest_permutations) <= significance && 1.0 / fewest_permutations > significance);
  const Resampling& r = options.resampling;
  CHECK(r.permutations >= fewest_permutations, "permutations: {}; at least {} are needed to reach p = {:g}", r.permutations,
        fewest_permutations, significance);
  for (const auto& [what, count] : {std::pair<std::string_view, std::int64_t>{"permutations", r.permutations}, {"splits", r.splits}}) {
    CHECK(count >= 1 && count <= most, "{}: {}; 1 to {} are allowed", what, count, most);
  }
  CHECK(std::isfinite(options.equivalence_margin) && options.equivalence_margin > 0,
        "equivalence margin: {}; it must be positive and finite", options.equivalence_margin);
}

}  // namespace gainlens::analyses
