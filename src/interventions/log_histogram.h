#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gainlens::interventions {

/// The distribution of lambda_obs of a head over calibration text, in bins of its logarithm. Each bin keeps the number,
/// the sum and the sum of squares of what fell into it, so that the mean of K' for any lambda has an error below 1e-7
/// however many numbers there were: a bin is 1/64 wide, and the third derivative of the logistic function is at most
/// 1/8.
class LogHistogram {
 public:
  /// @param logarithms  ln lambda_obs, each in [-64, 64)
  /// @throws RunFailed  one outside
  void add(std::span<const double> logarithms);
  std::int64_t count() const { return count_; }
  /// Mean of lambda_obs / (lambda + lambda_obs). @param log_lambda  ln lambda
  double mean_gain(double log_lambda) const;
  /// ln lambda with mean_gain() = `mean`, to 1e-12; none if no lambda between e^-64 and e^64 has it.
  std::optional<double> solve(double mean) const;

 private:
  struct Bin {
    double count = 0, sum = 0, squares = 0;  // of the distance from the bin's middle
  };
  std::vector<Bin> bins_;
  std::int64_t count_ = 0;
};

}  // namespace gainlens::interventions
