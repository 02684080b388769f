#include "bench/timing.h"

#include "core/check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>

namespace gainlens::bench {
namespace {

double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

double seconds_of(const std::function<void()>& method, bool processor) {
  if (processor) {
    const std::clock_t start = std::clock();
    method();
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  }
  const auto start = std::chrono::steady_clock::now();
  method();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The runs of one method so far.
struct Runs {
  std::vector<double> seconds;
  double total = 0;

  bool used_up(const RunBudget& budget) const {
    const auto count = static_cast<std::int64_t>(seconds.size());
    if (budget.repeats > 0) return count >= budget.repeats;
    return count >= budget.least && (total >= budget.seconds || count >= budget.most);
  }
};

}  // namespace

RunTimes summarise(std::vector<double> seconds) {
  ASSERT(!seconds.empty(), "times of no run");
  std::sort(seconds.begin(), seconds.end());
  return {quantile(seconds, 0.5), quantile(seconds, 0.25), quantile(seconds, 0.75),
          static_cast<std::int64_t>(seconds.size())};
}

std::vector<RunTimes> interleaved_times(std::span<const std::function<void()>> methods, const RunBudget& budget) {
  std::vector<Runs> runs(methods.size());
  for (bool ran = true; ran;) {
    ran = false;
    for (std::size_t i = 0; i < methods.size(); ++i) {
      if (runs[i].used_up(budget)) continue;
      runs[i].seconds.push_back(seconds_of(methods[i], budget.processor));
      runs[i].total += runs[i].seconds.back();
      ran = true;
    }
  }
  std::vector<RunTimes> times;
  times.reserve(runs.size());
  for (Runs& method : runs) times.push_back(summarise(std::move(method.seconds)));
  return times;
}

}  // namespace gainlens::bench
