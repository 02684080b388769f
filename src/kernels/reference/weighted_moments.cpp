#include "kernels/reference/weighted_moments.h"

#include "core/check.h"

#include <algorithm>
#include <cmath>

namespace gainlens::kernels {

WeightedMoments weighted_moments(std::span<const double> weights, std::span<const double> values) {
  CHECK(weights.size() == values.size(), "weighted_moments: {} weights for {} values; give one weight for each value",
        weights.size(), values.size());
  // Offsets from the value of the largest weight: the mean of equal values, or of one key, is exactly that value.
  const auto heaviest = std::max_element(weights.begin(), weights.end()) - weights.begin();
  const double base = values.empty() ? 0 : values[static_cast<std::size_t>(heaviest)];
  double total = 0, total_squares = 0, weighted_sum = 0;
  for (std::size_t key = 0; key < weights.size(); ++key) {
    CHECK(std::isfinite(weights[key]) && weights[key] >= 0,
          "weighted_moments: weight {} at key {}; must be finite and >= 0", weights[key], key);
    total += weights[key];
    total_squares += weights[key] * weights[key];
    weighted_sum += weights[key] * (values[key] - base);
  }
  CHECK(total > 0, "weighted_moments: all {} weights are zero; at least one must be positive", weights.size());

  const double mean = base + weighted_sum / total;
  double residual = 0;  // second pass: the one-pass form cancels when values share a large mean
  for (std::size_t key = 0; key < weights.size(); ++key) {
    residual += weights[key] * (values[key] - mean) * (values[key] - mean);
  }
  return {total * total / total_squares, mean, residual / total};
}

}  // namespace gainlens::kernels
