#pragma once

#include "bft/arm.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

// The weights of a filter by name and shape, without libtorch: bft/filter_weights.h has their tensors.

namespace gainlens::bft {

/// How a weight changes in training.
enum class WeightRole {
  weight,     ///< by gradients
  precision,  ///< by gradients, with a learning rate of its own
  constant,   ///< not by gradients
};

/// A weight of a filter with its name in a checkpoint and the shape that the configuration gives it.
struct FilterSlot {
  std::string_view name;  ///< "process_noise" of a layer; "precision.range" outside the layers
  std::vector<std::int64_t> shape;
  WeightRole role;
  std::optional<double> start;  ///< before training; absent: drawn
};

/// The weights of one layer's filter, in one order.
/// @param heads     of attention
/// @param estimate  size of what the gain acts on: the heads' together, or the width
/// @param predicts  whether a precision leaves the layer; without it, only what attention reads is asked for
std::vector<FilterSlot> filter_slots(const Filter& filter, std::int64_t width, std::int64_t heads,
                                     std::int64_t estimate, bool predicts);

/// What an initial precision follows from, in one order. None if the arm has no precisions.
/// @param ids      number of items or tokens, with id 0
/// @param counted  ids have a tau_base of their own
std::vector<FilterSlot> initial_precision_slots(const Filter& filter, std::int64_t width, std::int64_t ids,
                                                bool counted);

}  // namespace gainlens::bft
