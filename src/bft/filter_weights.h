#pragma once

#include "bft/arm.h"
#include "bft/initial_precision.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace gainlens::bft {

/// How a weight changes in training.
enum class WeightRole {
  weight,     ///< by gradients
  precision,  ///< by gradients, with a learning rate of its own
  constant,   ///< not by gradients
};

/// What the arms other than `plain` have in a layer. Each is undefined where the arm and its options do not ask for it.
struct FilterWeights {
  at::Tensor process_noise;    ///< [width] logits of Q
  at::Tensor decay;            ///< [1] logit of gamma, of predict `decay`
  at::Tensor recency;          ///< [1] logit of rho
  at::Tensor stretch;          ///< [width] running mean of max((1 + J)^2, 0.01); not learned
  at::Tensor gain;             ///< [width] logits of a constant gain
  at::Tensor gate, gate_bias;  ///< [width, width] and [width] of a gain that a gate gives
};

/// What the precision of items (or tokens) before the first layer follows from. Undefined where it is not asked for.
struct InitialPrecisionWeights {
  PrecisionNetwork network;  ///< content
  at::Tensor range;          ///< [1] tau_range, of content and count; learned by content alone
  at::Tensor base;           ///< [id] tau_base, of content and count; not learned. Undefined for tokens: 1 for each
  at::Tensor table;          ///< [id] p
  at::Tensor items;          ///< [id] tau of em; not learned by gradients
  at::Tensor strength;       ///< [1] share of the filter that is in force, below 1 while it warms up; not learned
};

/// A weight of a filter with its name in a checkpoint and the shape that the configuration gives it.
struct FilterSlot {
  std::string_view name;  ///< "process_noise" of a layer; "precision.range" outside the layers
  std::vector<std::int64_t> shape;
  at::Tensor* tensor;
  WeightRole role;
  std::optional<double> start;  ///< before training; absent: drawn
};

/// The weights of one layer's filter, in one order.
/// @param predicts  whether a precision leaves the layer; without it, only what attention reads is asked for
std::vector<FilterSlot> filter_slots(const Filter& filter, std::int64_t width, bool predicts, FilterWeights& weights);

/// What an initial precision follows from, in one order. None if the arm has no precisions.
/// @param ids      number of items or tokens, with id 0
/// @param counted  ids have a tau_base of their own
std::vector<FilterSlot> initial_precision_slots(const Filter& filter, std::int64_t width, std::int64_t ids,
                                                bool counted, InitialPrecisionWeights& weights);

/// tau before the first layer, within the bounds of the options. Computed in float32 at least.
/// @param ids        int64 [row]
/// @param embedding  [row, width]; read by `content` alone
/// @returns [row]
at::Tensor initial_precision(const FilterOptions& options, const InitialPrecisionWeights& weights,
                             const at::Tensor& ids, const at::Tensor& embedding);

/// The type of the filter's steps: float64 stays, all others become float32. Undefined stays undefined.
at::Tensor in_filter_type(const at::Tensor& x);

}  // namespace gainlens::bft
