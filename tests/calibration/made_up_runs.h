#pragma once

#include "analyses/verdicts.h"

#include <cstddef>
#include <cstdint>
#include <map>

namespace gainlens::testing {

/// Runs of a made-up model of 24 layers with 4 heads: BOS mass and every gain drift with depth, and are unrelated
/// otherwise. They are written, read and judged as those of a sweep.
struct MadeUpRuns {
  std::size_t runs = 25;
  std::int64_t kv_heads = 1;
  double drift = 0;  ///< range from the first to the last layer, in standard deviations of a layer
  std::uint64_t seed = 1;
};

/// How many of the runs get each ruling on prediction 1.
std::map<analyses::Ruling, std::size_t> rule_on_made_up_runs(const MadeUpRuns& made_up);

}  // namespace gainlens::testing
