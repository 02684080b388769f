#pragma once

#include "core/json.h"

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace gainlens::training {

/// How the learning rate goes on after its warm-up.
enum class Decay { constant, cosine };

/// @throws InvalidArgument  neither "constant" nor "cosine" (nearest match named)
Decay parse_decay(std::string_view name);

/// The learning rate over the steps, as a factor on its peak.
struct Schedule {
  Decay decay = Decay::cosine;
  std::int64_t warmup_steps = 0;  ///< steps of linear growth, from the factor 1 / (warmup_steps + 1)
  std::int64_t total_steps = 1;   ///< cosine: number of steps until the decay ends, warm-up included
  double final_factor = 0.1;      ///< cosine: factor at the last step
};

/// Factor of step 0, 1, ... During the warm-up it is (step + 1) / (warmup_steps + 1). After it, it is 1 (constant), or
/// follows half a cosine from 1 down to `final_factor` at the last step (cosine). Steps after the last have the factor
/// of the last.
double learning_rate_factor(const Schedule& schedule, std::int64_t step);

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

/// The order in which a training sees its examples. Each epoch is a permutation of its own, drawn from the seed and the
/// epoch alone. To resume, only the number of examples seen so far is needed.
class DataOrder {
 public:
  /// @param examples  number of examples in an epoch, at least 1
  DataOrder(std::uint64_t seed, std::int64_t examples);

  std::int64_t epoch_of(std::int64_t position) const { return position / examples_; }
  /// Index of the example at a position in the endless sequence of epochs.
  std::int64_t at(std::int64_t position);

 private:
  std::uint64_t seed_;
  std::int64_t examples_;
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> permutation_;  // of the epoch epoch_
};

}  // namespace gainlens::training
