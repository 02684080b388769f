#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>

// What the tests of attention for training share.

namespace gainlens::kernels::testing {

struct Call {
  std::int64_t batch, heads, kv_heads, length, dims;
  bool causal = true;
  double size = 1;       ///< of queries and keys; scores have the size size^2
  double slope = -0.05;  ///< of the distance, with moments
  double offset = 0;     ///< added to every value, with moments
};

inline std::string name(const Call& call) {
  return fmt::format("batch {}, {}/{} heads, {} positions, {} dimensions, {}", call.batch, call.heads, call.kv_heads,
                     call.length, call.dims, call.causal ? "causal" : "all keys");
}

inline double scale_of(const Call& call) {
  return 1 / std::sqrt(static_cast<double>(call.dims));
}

}  // namespace gainlens::kernels::testing
