#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace gainlens::analyses {

/// What a user may choose about the analyses of a sweep.
struct Options {
  std::optional<std::int64_t> deep_layers;  ///< how many of the run's last layers count as deep; absent: a quarter, rounded up
  std::vector<std::int64_t> at;  ///< lengths, in tokens, of the sink analyses; empty: 4k and 8k where present, else the two longest
  std::int64_t sinks = 20;       ///< rows of the table of the strongest sink heads
};

}  // namespace gainlens::analyses
