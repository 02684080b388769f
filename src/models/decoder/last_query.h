#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace gainlens::models {

/// What the last query of one sequence did in a layer of softmax attention, [head] on the CPU: the numbers that a pass
/// over the whole sequence has at this query (kernels::QueryStatistics). NaN: it sees no key.
struct LastQuery {
  std::int64_t sequence = 0;  ///< among those of the pass
  std::int64_t layer = 0;
  at::Tensor n_eff, kalman_gain, entropy;
  at::Tensor bos_mass;  ///< weight of the first token of the sequence; 0 where a window hides it
};
/// Is called for one layer after the other, and in it for one sequence after the other.
using SeeLastQuery = std::function<void(const LastQuery&)>;

}  // namespace gainlens::models
