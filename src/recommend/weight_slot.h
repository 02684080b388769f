#pragma once

#include "bft/filter_weights.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::recommend {

using bft::WeightRole;

/// A weight of a model with its name in a checkpoint and the shape that the configuration gives it.
struct WeightSlot {
  std::string name;
  std::vector<std::int64_t> shape;
  at::Tensor* tensor;
  WeightRole role = WeightRole::weight;
  std::optional<double> start;  ///< before training; absent: drawn
};

/// Gives a weight its values: float32, in the shape of the slot, without gradients.
using WeightSource = std::function<at::Tensor(const WeightSlot&)>;

}  // namespace gainlens::recommend
