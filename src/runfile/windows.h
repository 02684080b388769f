#pragma once

#include <cstdint>

namespace gainlens::runfile {

/// First query of the last quarter of a chunk of length T: ceil(3T/4). Source: method.md, "Sweep protocol".
constexpr std::int64_t last_quarter_begin(std::int64_t length) {
  return length - length / 4;
}

/// First query of the second half: ceil(T/2).
constexpr std::int64_t second_half_begin(std::int64_t length) {
  return length - length / 2;
}

/// Which queries of a chunk a summary is over: from the first of the window on.
enum class Window { last_quarter, second_half };

constexpr std::int64_t window_begin(Window window, std::int64_t length) {
  return window == Window::last_quarter ? last_quarter_begin(length) : second_half_begin(length);
}

/// By how much a weight may fall short of the sink lemma's bound and still count as meeting it: rounding in float32.
/// What `sink_bound_gain_violated` counts depends on it.
inline constexpr double bound_rounding = 1e-5;

}  // namespace gainlens::runfile
