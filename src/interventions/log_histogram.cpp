#include "interventions/log_histogram.h"

#include "core/check.h"

#include <cmath>

namespace gainlens::interventions {
namespace {

constexpr double limit = 64, bins_per_unit = 64;

double middle(std::size_t bin) {
  return (static_cast<double>(bin) + 0.5) / bins_per_unit - limit;
}

}  // namespace

void LogHistogram::add(std::span<const double> logarithms) {
  if (bins_.empty()) bins_.resize(static_cast<std::size_t>(2 * limit * bins_per_unit));
  for (const double logarithm : logarithms) {
    if (!(-limit <= logarithm && logarithm < limit)) {
      throw_run_failed("lambda_obs: its logarithm is {:.6g}; between -{} and {} it can be compared with a gate",
                       logarithm, limit, limit);
    }
    const auto bin = static_cast<std::size_t>((logarithm + limit) * bins_per_unit);
    const double distance = logarithm - middle(bin);
    bins_[bin].count += 1;
    bins_[bin].sum += distance;
    bins_[bin].squares += distance * distance;
  }
  count_ += std::ssize(logarithms);
}

double LogHistogram::mean_gain(double log_lambda) const {
  ASSERT(count_ > 0, "a mean of nothing");
  double total = 0;
  for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
    const auto& [count, sum, squares] = bins_[bin];
    if (count == 0) continue;
    // Expanded about the bin's own mean, up to its variance.
    const double shift = sum / count, variance = squares / count - shift * shift;
    const double gain = 1 / (1 + std::exp(log_lambda - middle(bin) - shift));
    total += count * (gain + 0.5 * variance * gain * (1 - gain) * (1 - 2 * gain));
  }
  return total / static_cast<double>(count_);
}

std::optional<double> LogHistogram::solve(double mean) const {
  double low = -limit, high = limit;  // the mean falls as lambda grows
  if (!(mean_gain(high) < mean && mean < mean_gain(low))) return std::nullopt;
  while (high - low > 1e-12) {
    const double centre = (low + high) / 2;
    if (centre == low || centre == high) break;
    (mean_gain(centre) > mean ? low : high) = centre;
  }
  return (low + high) / 2;
}

}  // namespace gainlens::interventions
