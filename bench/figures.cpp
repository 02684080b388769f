#include "bench/figures.h"

#include "core/check.h"

namespace gainlens::bench {
namespace {

bool same_heads(const AttentionCase& a, const AttentionCase& b) {
  return a.heads == b.heads && a.kv_heads == b.kv_heads && a.head_dim == b.head_dim && a.dtype == b.dtype;
}

}  // namespace

std::vector<PerformancePoint> performance_points(const CaseResult& result) {
  std::vector<PerformancePoint> points;
  const AttentionCase& shape = result.shape;
  for (const MethodResult& method : result.methods) {
    const auto ratio = result.ratio_to_sdpa(method.name);
    if (!ratio || method.name == method::matrix_product) continue;
    const RunTimes& times = *method.times;
    points.push_back({method_label(method.name), shape.length, shape.head_dim, shape.group(), shape.window,
                      times.median, times.low, times.high, *ratio, static_cast<double>(method.peak_bytes)});
  }
  return points;
}

std::vector<std::string> draw_figures(const Comparison& comparison, const std::filesystem::path& folder) {
  std::vector<PerformancePoint> ratios, costs;
  const std::string ours = method_label(method::statistics);
  for (const CaseResult& result : comparison.cases) {
    const bool same = same_heads(result.shape, comparison.cases.front().shape);
    const bool first = same && result.shape.window == comparison.cases.front().shape.window;
    for (const PerformancePoint& point : performance_points(result)) {
      if (point.method == ours) ratios.push_back(point);
      if (first || (same && result.shape.window && point.method == ours)) costs.push_back(point);
    }
  }
  CHECK(!ratios.empty(), "--plot: nothing was measured");
  std::filesystem::create_directories(folder);
  std::vector<std::string> files = reports::render(performance_ratio_figure(ratios), folder);
  const std::vector<std::string> others = reports::render(performance_cost_figure(costs), folder);
  files.insert(files.end(), others.begin(), others.end());
  return files;
}

}  // namespace gainlens::bench
