#include "analyses/outlying_value.h"

#include "analyses/statistics.h"

#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace gainlens::analyses {

Maybe<OutlyingValue> outlying_value(std::span<const double> values) {
  using Result = Maybe<OutlyingValue>;
  const std::size_t count = values.size();
  if (count < 3) return Result::none("a value among others needs at least 3 values");
  OutlyingValue found{0, 1};
  double farthest = -1;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<double> others(values.begin(), values.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    if (alike(others, 0)) return Result::none("all values but one are alike");
    const Estimate middle = mean_estimate(others);  // the value itself errs by the deviation of one
    const double distance = std::abs(values[i] - middle.value) / (middle.error * std::sqrt(static_cast<double>(count)));
    if (distance <= farthest) continue;
    farthest = distance;
    found.place = i;
  }
  const boost::math::students_t student(static_cast<double>(count - 2));
  found.p =
      std::min(1.0, 2 * static_cast<double>(count) * boost::math::cdf(boost::math::complement(student, farthest)));
  return found;
}

}  // namespace gainlens::analyses
