#include "bft/filter_slots.h"

#include <cmath>

namespace gainlens::bft {
namespace {

/// Neurons of the network of `content`. Source: the paper, section 3.3.
constexpr std::int64_t network_width = 16;

double logit(double share) {
  return std::log(share / (1 - share));
}

WeightRole role_of_range(const FilterOptions& options) {
  return options.initial_precision == InitialPrecision::content ? WeightRole::precision : WeightRole::constant;
}

}  // namespace

std::vector<FilterSlot> filter_slots(const Filter& filter, std::int64_t width, std::int64_t heads,
                                     std::int64_t estimate, bool predicts) {
  const FilterOptions& options = filter.options;
  const bool moves = filter.has_gain() && predicts;
  std::vector<FilterSlot> slots;
  if (moves && options.predict == Predict::jacobian && options.most_process_noise > 0) {
    slots.push_back({"process_noise", {width}, WeightRole::precision, options.process_noise_start});
  }
  if (moves && options.predict == Predict::decay)
    slots.push_back({"decay", {1}, WeightRole::precision, logit(options.discount)});
  const bool has_range =
      options.initial_precision == InitialPrecision::content || options.initial_precision == InitialPrecision::count;
  if (predicts && filter.begins_anew() && has_range) slots.push_back({"range", {1}, role_of_range(options), 1});
  if (filter.has_recency_decay()) {
    const std::int64_t rates = options.decay_owner == DecayOwner::head ? heads : 1;
    slots.push_back({"recency", {rates}, WeightRole::precision, logit(options.initial_decay)});
  }
  if (moves && filter.has_running_jacobian()) slots.push_back({"stretch", {width}, WeightRole::constant, 1});
  if (filter.parts().factor == AttentionFactor::constant)
    slots.push_back({"gain", {estimate}, WeightRole::precision, logit(options.initial_gain)});
  if (filter.parts().factor == AttentionFactor::gate) {
    slots.push_back({"gate.weight", {estimate, width}, WeightRole::weight, std::nullopt});
    slots.push_back({"gate.bias", {estimate}, WeightRole::weight, logit(options.initial_gain)});
  }
  return slots;
}

std::vector<FilterSlot> initial_precision_slots(const Filter& filter, std::int64_t width, std::int64_t ids,
                                                bool counted) {
  std::vector<FilterSlot> slots;
  if (!filter.has_initial_precision()) return slots;
  const InitialPrecision kind = filter.options.initial_precision;
  const bool content = kind == InitialPrecision::content;
  const WeightRole learned = WeightRole::precision, constant = WeightRole::constant;
  if (content || kind == InitialPrecision::count) {
    slots.push_back({"precision.range", {1}, role_of_range(filter.options), 1});
    if (counted) slots.push_back({"precision.base", {ids}, constant, 0});
  }
  if (content) {
    slots.push_back({"precision.network.hidden.weight", {network_width, width}, learned, {}});
    slots.push_back({"precision.network.hidden.bias", {network_width}, learned, 0});
    slots.push_back({"precision.network.output.weight", {1, network_width}, learned, 0});
    slots.push_back({"precision.network.output.bias", {1}, learned, 0});
  } else if (kind == InitialPrecision::table) {
    slots.push_back({"precision.table", {ids}, learned, 0});
  } else if (kind == InitialPrecision::em) {
    slots.push_back({"precision.items", {ids}, constant, 1});
  }
  slots.push_back({"precision.strength", {1}, constant, 1});
  return slots;
}

}  // namespace gainlens::bft
