#include "bft/filter_weights.h"

#include "core/check.h"

#include <ATen/ATen.h>

#include <utility>

namespace gainlens::bft {
at::Tensor in_filter_type(const at::Tensor& x) {
  return x.defined() && x.scalar_type() != at::kDouble ? x.to(at::kFloat) : x;
}

std::map<std::string_view, at::Tensor*> tensors_by_name(FilterWeights& weights) {
  return {{"process_noise", &weights.process_noise},
          {"decay", &weights.decay},
          {"range", &weights.range},
          {"recency", &weights.recency},
          {"stretch", &weights.stretch},
          {"gain", &weights.gain},
          {"gate.weight", &weights.gate},
          {"gate.bias", &weights.gate_bias}};
}

std::map<std::string_view, at::Tensor*> tensors_by_name(InitialPrecisionWeights& weights) {
  PrecisionNetwork& network = weights.network;
  return {{"precision.range", &weights.range},
          {"precision.base", &weights.base},
          {"precision.network.hidden.weight", &network.hidden},
          {"precision.network.hidden.bias", &network.hidden_bias},
          {"precision.network.output.weight", &network.output},
          {"precision.network.output.bias", &network.output_bias},
          {"precision.table", &weights.table},
          {"precision.items", &weights.items},
          {"precision.strength", &weights.strength}};
}

PriorPrecision prior_precision(const FilterOptions& options, const InitialPrecisionWeights& weights,
                               const at::Tensor& ids, const at::Tensor& embedding) {
  switch (options.initial_precision) {
    case InitialPrecision::content: {
      const PrecisionNetwork network{
          in_filter_type(weights.network.hidden), in_filter_type(weights.network.hidden_bias),
          in_filter_type(weights.network.output), in_filter_type(weights.network.output_bias)};
      const at::Tensor rows = in_filter_type(embedding);
      const at::Tensor base = weights.base.defined() ? weights.base.index_select(0, ids)
                                                     : at::ones({rows.size(0)}, rows.options().requires_grad(false));
      return {.base = base, .rest = content_precision(network, rows)};
    }
    case InitialPrecision::table:
      return {.rest = table_precision(in_filter_type(weights.table).index_select(0, ids))};
    case InitialPrecision::count:
      return {.base = weights.base.index_select(0, ids)};
    case InitialPrecision::em:
      return {.rest = weights.items.index_select(0, ids)};
  }
  ASSERT(false, "filter: not a member of InitialPrecision");
  return {};
}

at::Tensor initial_precision(const FilterOptions& options, const PriorPrecision& prior, const at::Tensor& range) {
  at::Tensor found = prior.rest;
  if (prior.base.defined()) {
    const at::Tensor base_part = in_filter_type(range) * prior.base;
    found = prior.rest.defined() ? base_part + prior.rest : base_part;
  }
  return found.clamp(options.least_precision, options.most_precision);
}

}  // namespace gainlens::bft
