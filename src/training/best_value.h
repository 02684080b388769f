#pragma once

#include "core/json.h"

#include <cstdint>
#include <limits>

namespace gainlens::training {

/// Keeps the smallest validation loss and tells when training should stop early.
class BestValue {
 public:
  /// @param patience  exhausted() becomes true after this many evaluations without a new best; 0: never
  /// @throws InvalidArgument  negative patience
  explicit BestValue(std::int64_t patience = 0);

  /// @returns whether `value` is a new best; false for NaN
  bool observe(std::int64_t step, double value);
  bool exhausted() const { return patience_ > 0 && since_best_ >= patience_; }
  bool any() const { return step_ >= 0; }
  double value() const { return value_; }      ///< best value; infinity before the first
  std::int64_t step() const { return step_; }  ///< step of the best value; -1 before the first

  Json to_json() const;
  /// @throws InvalidArgument  not JSON that to_json() returned
  void restore(const Json& json);

 private:
  std::int64_t patience_;
  std::int64_t since_best_ = 0;
  std::int64_t step_ = -1;
  double value_ = std::numeric_limits<double>::infinity();
};

}  // namespace gainlens::training
