#pragma once

#include "bft/filter_weights.h"
#include "models/checkpoint/named_tensor.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
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

/// The weights of some role by name, in the order of the slots, for an optimiser.
std::vector<models::NamedTensor> parameters_of(std::span<const WeightSlot> slots, WeightRole role);

/// Of the weights that are drawn.
inline constexpr double initial_deviation = 0.02;

/// What a weight begins with, in float32: its start, or numbers from N(0, initial_deviation^2). They follow from the
/// seed and its own name: models that share a weight's name and shape share its start.
at::Tensor initial_values(const WeightSlot& slot, std::uint64_t seed);

/// Where the weights of a model are stored.
struct WeightSource {
  std::string where;  ///< for messages
  /// The values of a weight: float32, in the shape of the slot, without gradients.
  std::function<at::Tensor(const WeightSlot&)> read;
};

}  // namespace gainlens::recommend
