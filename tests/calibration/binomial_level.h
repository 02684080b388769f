#pragma once

#include <gtest/gtest.h>
#include <boost/math/distributions/binomial.hpp>

#include <cstdint>

namespace gainlens::testing {

/// Whether a test of level 0.05 may have this rate of rejections in `trials` trials: within the central 99.9% of a
/// binomial distribution.
inline ::testing::AssertionResult is_at_level(double rate, std::int64_t trials) {
  const boost::math::binomial distribution(static_cast<double>(trials), 0.05);
  const double low = boost::math::quantile(distribution, 0.0005) / static_cast<double>(trials);
  const double high = boost::math::quantile(distribution, 0.9995) / static_cast<double>(trials);
  if (rate >= low && rate <= high) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "rate " << rate << " is outside [" << low << ", " << high << "]";
}

}  // namespace gainlens::testing
