#include "recommend/sasrec_weights.h"

#include "core/check.h"
#include "core/sha256.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <charconv>
#include <cmath>

namespace gainlens::recommend {
namespace {

constexpr double initial_deviation = 0.02;

/// Seed of one weight: another for each name.
std::uint64_t seed_of(std::uint64_t seed, const std::string& name) {
  const std::string digits = sha256_hex(fmt::format("{} {}", seed, name)).substr(0, 16);
  std::uint64_t found = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), found, 16);
  return found;
}

class Slots {
 public:
  void drawn(std::string name, at::Tensor& tensor, std::vector<std::int64_t> shape,
             WeightRole role = WeightRole::weight) {
    slots_.push_back({std::move(name), std::move(shape), &tensor, role, std::nullopt});
  }
  void add(std::string name, at::Tensor& tensor, std::vector<std::int64_t> shape, WeightRole role, double start) {
    slots_.push_back({std::move(name), std::move(shape), &tensor, role, start});
  }
  void norm(const std::string& name, NormWeights& norm, std::int64_t width) {
    add(name + ".weight", norm.weight, {width}, WeightRole::weight, 1);
    add(name + ".bias", norm.bias, {width}, WeightRole::weight, 0);
  }
  void linear(const std::string& name, LinearWeights& linear, std::int64_t out, std::int64_t in,
              double bias_start = 0) {
    drawn(name + ".weight", linear.weight, {out, in});
    add(name + ".bias", linear.bias, {out}, WeightRole::weight, bias_start);
  }
  std::vector<SasRecSlot> take() { return std::move(slots_); }

 private:
  std::vector<SasRecSlot> slots_;
};

double logit(double share) {
  return std::log(share / (1 - share));
}

void add_item_precision(Slots& slots, const SasRecConfig& config, ItemPrecisionWeights& weights) {
  constexpr std::int64_t hidden = 16;
  const bft::InitialPrecision kind = config.filter.initial_precision;
  const bool content = kind == bft::InitialPrecision::content;
  if (content || kind == bft::InitialPrecision::count) {
    slots.add("precision.range", weights.range, {1}, content ? WeightRole::precision : WeightRole::constant, 1);
    slots.add("precision.base", weights.base, {config.items + 1}, WeightRole::constant, 0);
  }
  if (content) {
    bft::PrecisionNetwork& network = weights.network;
    const std::string prefix = "precision.network.";
    slots.drawn(prefix + "hidden.weight", network.hidden, {hidden, config.width}, WeightRole::precision);
    slots.add(prefix + "hidden.bias", network.hidden_bias, {hidden}, WeightRole::precision, 0);
    slots.add(prefix + "output.weight", network.output, {1, hidden}, WeightRole::precision, 0);
    slots.add(prefix + "output.bias", network.output_bias, {1}, WeightRole::precision, 0);
  } else if (kind == bft::InitialPrecision::table) {
    slots.add("precision.table", weights.table, {config.items + 1}, WeightRole::precision, 0);
  } else if (kind == bft::InitialPrecision::em) {
    slots.add("precision.items", weights.items, {config.items + 1}, WeightRole::constant, 1);
  }
  slots.add("precision.strength", weights.strength, {1}, WeightRole::constant, 1);
}

void add_filter(Slots& slots, const std::string& prefix, const SasRecConfig& config, FilterWeights& weights) {
  const bft::FilterOptions& filter = config.filter;
  const std::int64_t width = config.width;
  if (config.has_gain() && filter.predict == bft::Predict::jacobian && filter.most_process_noise > 0) {
    slots.add(prefix + "process_noise", weights.process_noise, {width}, WeightRole::precision,
              filter.process_noise_start);
  }
  if (config.has_gain() && filter.predict == bft::Predict::decay)
    slots.add(prefix + "decay", weights.decay, {1}, WeightRole::precision, logit(filter.discount));
  if (config.has_recency_decay())
    slots.add(prefix + "recency", weights.recency, {1}, WeightRole::precision, logit(filter.initial_decay));
  if (config.has_jacobian() && filter.running_jacobian)
    slots.add(prefix + "stretch", weights.stretch, {width}, WeightRole::constant, 1);
  if (config.parts().factor == AttentionFactor::constant)
    slots.add(prefix + "gain", weights.gain, {width}, WeightRole::precision, logit(filter.initial_gain));
  if (config.parts().factor == AttentionFactor::gate)
    slots.linear(prefix + "gate", weights.gate, width, width, logit(filter.initial_gain));
}

}  // namespace

std::vector<SasRecSlot> sasrec_slots(const SasRecConfig& config, SasRecWeights& weights) {
  const std::int64_t width = config.width;
  Slots slots;
  slots.drawn("item_embedding.weight", weights.item_embedding, {config.items + 1, width});
  slots.drawn("position_embedding.weight", weights.position_embedding, {config.positions, width});
  if (config.embedding_norm) slots.norm("embedding_norm", weights.embedding_norm, width);
  if (config.parts().precision_bias) add_item_precision(slots, config, weights.precision);
  weights.layers.resize(static_cast<std::size_t>(config.layers));
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    SasRecLayerWeights& layer = weights.layers[i];
    const std::string prefix = fmt::format("layers.{}.", i);
    slots.norm(prefix + "attention_norm", layer.attention_norm, width);
    slots.linear(prefix + "attention.query", layer.query, width, width);
    slots.linear(prefix + "attention.key", layer.key, width, width);
    slots.linear(prefix + "attention.value", layer.value, width, width);
    if (config.has_output_projection()) slots.linear(prefix + "attention.output", layer.output, width, width);
    slots.norm(prefix + "mlp_norm", layer.mlp_norm, width);
    slots.linear(prefix + "mlp.up", layer.up, config.inner_width, width);
    slots.linear(prefix + "mlp.down", layer.down, width, config.inner_width);
    add_filter(slots, prefix + "filter.", config, layer.filter);
  }
  if (config.norm == NormPlace::pre) slots.norm("final_norm", weights.final_norm, width);
  return slots.take();
}

SasRecWeights initial_sasrec_weights(const SasRecConfig& config, std::uint64_t seed) {
  SasRecWeights weights;
  for (const SasRecSlot& slot : sasrec_slots(config, weights)) {
    at::Tensor values;
    if (slot.start) {
      values = at::full(slot.shape, *slot.start, at::kFloat);
    } else {
      values = at::empty(slot.shape, at::kFloat)
                   .normal_(0, initial_deviation, at::make_generator<at::CPUGeneratorImpl>(seed_of(seed, slot.name)));
    }
    if (slot.tensor == &weights.item_embedding) values[0].zero_();
    *slot.tensor = values.set_requires_grad(slot.role != WeightRole::constant);
  }
  return weights;
}

std::vector<models::NamedTensor> sasrec_parameters(const SasRecConfig& config, SasRecWeights& weights,
                                                   WeightRole role) {
  std::vector<models::NamedTensor> parameters;
  for (const SasRecSlot& slot : sasrec_slots(config, weights)) {
    if (slot.role == role) parameters.push_back({slot.name, *slot.tensor});
  }
  return parameters;
}

}  // namespace gainlens::recommend
