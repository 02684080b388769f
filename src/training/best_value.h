#pragma once

#include "core/json.h"

#include <cstdint>
#include <limits>

namespace gainlens::training {

/// Keeps the smallest validation loss and says when to stop waiting for a smaller one (early stopping).
class BestValue {
 public:
  /// @param patience  evaluations without a new best after which exhausted() is true; 0: never
  explicit BestValue(std::int64_t patience = 0);

  /// @returns whether `value` is a new best. NaN never is.
  bool observe(std::int64_t step, double value);
  bool exhausted() const { return patience_ > 0 && since_best_ >= patience_; }
  bool any() const { return step_ >= 0; }
  double value() const { return value_; }      ///< infinity before the first
  std::int64_t step() const { return step_; }  ///< -1 before the first

  Json to_json() const;
  /// @throws InvalidArgument  not what to_json() gave
  void restore(const Json& json);

 private:
  std::int64_t patience_;
  std::int64_t since_best_ = 0;
  std::int64_t step_ = -1;
  double value_ = std::numeric_limits<double>::infinity();
};

}  // namespace gainlens::training
