#pragma once

#include "bft/filter_slots.h"
#include "bft/initial_precision.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <string_view>

namespace gainlens::bft {

/// What the arms other than `plain` have in a layer. Each is undefined where the arm and its options do not ask for it.
struct FilterWeights {
  at::Tensor process_noise;    ///< [width] logits of Q
  at::Tensor decay;            ///< [1] logit of gamma, of predict `decay`
  at::Tensor range;            ///< [1] tau_range with which the next layer begins, of predict `prior`
  at::Tensor recency;          ///< [1] or [head] logits of rho
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

/// The tensors by the names of their slots.
std::map<std::string_view, at::Tensor*> tensors_by_name(FilterWeights& weights);
std::map<std::string_view, at::Tensor*> tensors_by_name(InitialPrecisionWeights& weights);

/// What the tau of each row consists of: tau_range base + rest. Undefined where the kind has no such part.
struct PriorPrecision {
  at::Tensor base = {};  ///< [row] tau_base
  at::Tensor rest = {};  ///< [row]
};

/// Computed in float32 at least.
/// @param ids        int64 [row]
/// @param embedding  [row, width]; read by `content` alone
PriorPrecision prior_precision(const FilterOptions& options, const InitialPrecisionWeights& weights,
                               const at::Tensor& ids, const at::Tensor& embedding);

/// tau before a layer, within the bounds of the options. Source: eq. (11) [eq:tau-content].
/// @param range  [1] tau_range; undefined for kinds that have none
/// @returns [row]
at::Tensor initial_precision(const FilterOptions& options, const PriorPrecision& prior, const at::Tensor& range);

/// The type of the filter's steps: float64 stays, all others become float32. Undefined stays undefined.
at::Tensor in_filter_type(const at::Tensor& x);

}  // namespace gainlens::bft
