#include "analyses/options.h"

#include "core/error.h"

#include <cmath>
#include <string_view>
#include <utility>

namespace gainlens::analyses {

void check(const Options& options) {
  constexpr std::int64_t most = 10'000'000;  // beyond, memory and hours go and no digit of a p comes
  const Resampling& r = options.resampling;
  for (const auto& [what, count] :
       {std::pair<std::string_view, std::int64_t>{"permutations", r.permutations}, {"bootstraps", r.bootstraps}, {"splits", r.splits}}) {
    CHECK(count >= 1 && count <= most, "{}: {}; 1 to {} are allowed", what, count, most);
  }
  CHECK(std::isfinite(options.equivalence_margin) && options.equivalence_margin > 0,
        "equivalence margin: {}; it must be positive and finite", options.equivalence_margin);
}

}  // namespace gainlens::analyses
