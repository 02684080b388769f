#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::recommend {

/// How a weight changes in training.
enum class WeightRole {
  weight,     ///< by gradients
  precision,  ///< by gradients, with a learning rate of its own
  constant,   ///< not by gradients
};

/// A weight of a model with its name in a checkpoint and the shape that the configuration gives it.
struct WeightSlot {
  std::string name;
  std::vector<std::int64_t> shape;
  at::Tensor* tensor;
  WeightRole role = WeightRole::weight;
  std::optional<double> start;  ///< before training; absent: drawn
};

/// Where the weights of a model are stored.
struct WeightSource {
  std::string where;  ///< for messages
  /// The values of a weight: float32, in the shape of the slot, without gradients.
  std::function<at::Tensor(const WeightSlot&)> read;
};

}  // namespace gainlens::recommend
