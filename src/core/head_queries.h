#pragma once

#include <cstdint>
#include <vector>

namespace gainlens {

/// Statistics of some queries of one query head. Definitions: docs/method.md, "Statistics of one query".
struct HeadQueries {
  std::int64_t layer = 0;  ///< original index
  std::int64_t head = 0;
  std::vector<float> n_eff, kalman_gain, entropy, bos_mass;  ///< [query]; NaN: the query sees no key
};

}  // namespace gainlens
