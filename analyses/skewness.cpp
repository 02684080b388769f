#include "analyses/skewness.h"

#include "analyses/statistics.h"

#include <cmath>

namespace gainlens::analyses {

Measured skewness(std::span<const double> values, double scale) {
  if (values.size() < 3) return Measured::none("a skewness needs at least 3 values");
  if (alike(values, scale)) return Measured::none("all values are alike");
  const double centre = mean(values), deviation = std::sqrt(population_variance(values));
  double cubes = 0;
  for (const double value : values) cubes += std::pow((value - centre) / deviation, 3);
  return cubes / static_cast<double>(values.size());
}

}  // namespace gainlens::analyses
