#pragma once

#include "bench/comparison.h"
#include "bench/performance_figures.h"

#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::bench {

/// The results of a case for figures: every measured method except the matrix product.
std::vector<PerformancePoint> performance_points(const CaseResult& result);

/// Draws two figures as SVG, PDF and PNG. `performance-ratio` shows the statistics at all shapes. `performance-cost`
/// shows all methods at the first shape, and ours with a window if the same heads were measured with one.
/// @returns  names of the files
/// @throws InvalidArgument  nothing was measured
/// @throws RunFailed        as reports::render
std::vector<std::string> draw_figures(const Comparison& comparison, const std::filesystem::path& folder);

}  // namespace gainlens::bench
