#pragma once

#include "core/query_windows.h"

#include <cstdint>

namespace gainlens::runfile {

using gainlens::last_quarter_begin;
using gainlens::second_half_begin;

/// The queries of a chunk that a summary covers: from the first query of the window to the end of the chunk.
enum class Window { last_quarter, second_half };

constexpr std::int64_t window_begin(Window window, std::int64_t length) {
  return window == Window::last_quarter ? last_quarter_begin(length) : second_half_begin(length);
}

/// How far a weight may lie below the sink lemma's bound and still count as meeting it. It allows for rounding in
/// float32. `sink_bound_gain_violated` depends on it.
inline constexpr double bound_rounding = 1e-5;

}  // namespace gainlens::runfile
