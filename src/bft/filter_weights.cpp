#include "bft/filter_weights.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

namespace gainlens::bft {
namespace {

/// Neurons of the network of `content`. Source: the paper, section 3.3.
constexpr std::int64_t network_width = 16;

double logit(double share) {
  return std::log(share / (1 - share));
}

}  // namespace

at::Tensor in_filter_type(const at::Tensor& x) {
  return x.defined() && x.scalar_type() != at::kDouble ? x.to(at::kFloat) : x;
}

std::vector<FilterSlot> filter_slots(const Filter& filter, std::int64_t width, bool predicts, FilterWeights& weights) {
  const FilterOptions& options = filter.options;
  const bool moves = filter.has_gain() && predicts;
  std::vector<FilterSlot> slots;
  if (moves && options.predict == Predict::jacobian && options.most_process_noise > 0) {
    slots.push_back(
        {"process_noise", {width}, &weights.process_noise, WeightRole::precision, options.process_noise_start});
  }
  if (moves && options.predict == Predict::decay)
    slots.push_back({"decay", {1}, &weights.decay, WeightRole::precision, logit(options.discount)});
  if (filter.has_recency_decay())
    slots.push_back({"recency", {1}, &weights.recency, WeightRole::precision, logit(options.initial_decay)});
  if (moves && filter.has_running_jacobian())
    slots.push_back({"stretch", {width}, &weights.stretch, WeightRole::constant, 1});
  if (filter.parts().factor == AttentionFactor::constant)
    slots.push_back({"gain", {width}, &weights.gain, WeightRole::precision, logit(options.initial_gain)});
  if (filter.parts().factor == AttentionFactor::gate) {
    slots.push_back({"gate.weight", {width, width}, &weights.gate, WeightRole::weight, std::nullopt});
    slots.push_back({"gate.bias", {width}, &weights.gate_bias, WeightRole::weight, logit(options.initial_gain)});
  }
  return slots;
}

std::vector<FilterSlot> initial_precision_slots(const Filter& filter, std::int64_t width, std::int64_t ids,
                                                bool counted, InitialPrecisionWeights& weights) {
  std::vector<FilterSlot> slots;
  if (!filter.has_initial_precision()) return slots;
  const InitialPrecision kind = filter.options.initial_precision;
  const bool content = kind == InitialPrecision::content;
  const WeightRole learned = WeightRole::precision, constant = WeightRole::constant;
  if (content || kind == InitialPrecision::count) {
    slots.push_back({"precision.range", {1}, &weights.range, content ? learned : constant, 1});
    if (counted) slots.push_back({"precision.base", {ids}, &weights.base, constant, 0});
  }
  if (content) {
    PrecisionNetwork& network = weights.network;
    slots.push_back({"precision.network.hidden.weight", {network_width, width}, &network.hidden, learned, {}});
    slots.push_back({"precision.network.hidden.bias", {network_width}, &network.hidden_bias, learned, 0});
    slots.push_back({"precision.network.output.weight", {1, network_width}, &network.output, learned, 0});
    slots.push_back({"precision.network.output.bias", {1}, &network.output_bias, learned, 0});
  } else if (kind == InitialPrecision::table) {
    slots.push_back({"precision.table", {ids}, &weights.table, learned, 0});
  } else if (kind == InitialPrecision::em) {
    slots.push_back({"precision.items", {ids}, &weights.items, constant, 1});
  }
  slots.push_back({"precision.strength", {1}, &weights.strength, constant, 1});
  return slots;
}

at::Tensor initial_precision(const FilterOptions& options, const InitialPrecisionWeights& weights,
                             const at::Tensor& ids, const at::Tensor& embedding) {
  at::Tensor found;
  switch (options.initial_precision) {
    case InitialPrecision::content: {
      const PrecisionNetwork network{
          in_filter_type(weights.network.hidden), in_filter_type(weights.network.hidden_bias),
          in_filter_type(weights.network.output), in_filter_type(weights.network.output_bias)};
      const at::Tensor rows = in_filter_type(embedding);
      const at::Tensor base = weights.base.defined() ? weights.base.index_select(0, ids)
                                                     : at::ones({rows.size(0)}, rows.options().requires_grad(false));
      found = content_precision(network, rows, base, in_filter_type(weights.range));
      break;
    }
    case InitialPrecision::table:
      found = table_precision(in_filter_type(weights.table).index_select(0, ids));
      break;
    case InitialPrecision::count:
      found = weights.range * weights.base.index_select(0, ids);
      break;
    case InitialPrecision::em:
      found = weights.items.index_select(0, ids);
      break;
  }
  return found.clamp(options.least_precision, options.most_precision);
}

}  // namespace gainlens::bft
