#pragma once

#include "bench/comparison.h"
#include "reports/performance_figures.h"

#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::bench {

/// Every measured method but the matrix product.
std::vector<reports::PerformancePoint> performance_points(const CaseResult& result);

/// Draws `performance-ratio`, the statistics over all shapes, and `performance-cost`, all methods at the first shape
/// (and ours with a window where the same heads were measured with one), as SVG, PDF and PNG.
/// @return names of the files
/// @throws InvalidArgument  nothing was measured; RunFailed  as reports::render
std::vector<std::string> draw_figures(const Comparison& comparison, const std::filesystem::path& folder);

}  // namespace gainlens::bench
