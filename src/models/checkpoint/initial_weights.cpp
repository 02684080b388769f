#include "models/checkpoint/initial_weights.h"

#include "core/check.h"
#include "core/error.h"
#include "core/random.h"
#include "models/checkpoint/slot_tensors.h"
#include "models/families/family.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>

namespace gainlens::models {
namespace {

constexpr double embedding_deviation = 0.02;
/// Random stream of the filter's drawn weights.
constexpr std::uint64_t filter_stream = std::uint64_t{1} << 41;

at::Tensor leaf(const at::Tensor& tensor) {
  return tensor.set_requires_grad(true);
}

/// Fills the weights slot by slot, in the order of the checkpoint.
class Initialiser {
 public:
  Initialiser(const DecoderConfig& config, std::uint64_t seed)
      : config_(config),
        generator_(at::make_generator<at::CPUGeneratorImpl>(seed)),
        filter_generator_(at::make_generator<at::CPUGeneratorImpl>(Random(seed, filter_stream).bits())) {}

  at::Tensor normal(const std::vector<std::int64_t>& shape, double deviation) {
    return leaf(at::empty(shape, at::kFloat).normal_(0, deviation, generator_));
  }

  at::Tensor fan_in(const std::vector<std::int64_t>& shape, double factor = 1) {
    return normal(shape, factor / std::sqrt(static_cast<double>(shape.back())));
  }

  /// Initial values of one part of a stored tensor.
  at::Tensor part(const SlotPart& part, bool writes_stream) {
    switch (part.kind) {
      case WeightField::Kind::norm:
        return leaf(at::full(part.shape, 1 - config_.norm_offset, at::kFloat));
      case WeightField::Kind::bias:
      case WeightField::Kind::logit:
      case WeightField::Kind::correction:
        return leaf(at::zeros(part.shape, at::kFloat));
      case WeightField::Kind::embedding:
        return normal(part.shape, embedding_deviation);
      case WeightField::Kind::convolution:
        return fan_in(part.shape);
      case WeightField::Kind::projection:
        return fan_in(part.shape, writes_stream ? 1 / std::sqrt(2.0 * static_cast<double>(config_.layers)) : 1);
      case WeightField::Kind::filter:
      case WeightField::Kind::precision:
        if (part.start) return leaf(at::full(part.shape, *part.start, at::kFloat));
        return leaf(at::empty(part.shape, at::kFloat)
                        .normal_(0, 1 / std::sqrt(static_cast<double>(part.shape.back())), filter_generator_));
      case WeightField::Kind::constant:
        return at::full(part.shape, part.start.value(), at::kFloat);
    }
    throw_internal_error(__FILE__, __LINE__, "a weight of no kind");
  }

 private:
  const DecoderConfig& config_;
  at::Generator generator_;
  at::Generator filter_generator_;  // of its own: the other weights are those of the model without the filter
};

}  // namespace

std::string stacked_tensor(const DecoderConfig& config) {
  for (const TensorSlot& slot : tensor_slots(config, tensor_names(family_named(config.family, "model"), config))) {
    if (std::ranges::any_of(slot.parts, [](const SlotPart& part) { return part.expert >= 0; })) return slot.name;
  }
  return {};
}

DecoderWeights initial_weights(const DecoderConfig& config, std::uint64_t seed) {
  DecoderWeights weights;
  Initialiser initialiser(config, seed);
  weights.layers.resize(static_cast<std::size_t>(config.layers));
  const SlotTargets targets(weights);
  for (const TensorSlot& slot : tensor_slots(config, tensor_names(family_named(config.family, "model"), config))) {
    for (const SlotPart& part : slot.parts) {
      ASSERT(part.expert < 0, "initial weights: stacks of experts are not trained");
      const bool writes_stream = slot.layer >= 0 && (part.field == "output" || part.field == "mlp_down");
      targets.of(slot, part) = initialiser.part(part, writes_stream);
    }
  }
  if (config.tied_head) weights.head = weights.embedding;
  return weights;
}

std::vector<NamedTensor> decoder_parameters(const DecoderConfig& config, DecoderWeights& weights, WeightRole role) {
  const auto role_of = [](const SlotPart& part) {
    switch (part.kind) {
      case WeightField::Kind::precision:
        return WeightRole::precision;
      case WeightField::Kind::constant:
      case WeightField::Kind::correction:  // chooses, and so has no gradient
        return WeightRole::constant;
      default:
        return WeightRole::weight;
    }
  };
  // Other parts than an output gate are told apart by their places in the decoder.
  const auto name_of_part = [](const TensorSlot& slot, std::size_t part) {
    if (part == 0) return slot.name;
    const std::string_view field = slot.parts[part].field;
    return fmt::format("{}.{}", slot.name, field == "gate_score" ? "gate" : field);
  };
  std::vector<NamedTensor> parameters;
  const auto add = [&](const std::string& name, const at::Tensor& tensor) { parameters.push_back({name, tensor}); };
  const auto add_factors = [&](const TensorSlot& slot, std::size_t part) {
    const auto& factors = weights.layers[static_cast<std::size_t>(slot.layer)].low_rank;
    const auto found = factors.find(slot.parts[part].field);
    if (found == factors.end()) return;
    const std::string name = name_of_part(slot, part);
    const auto renamed = [&](const std::string& factor) {
      return std::string(name).insert(name.find(".weight"), "." + factor);
    };
    if (part == 0) add(renamed("lora_A"), found->second.down);
    add(renamed("lora_B"), found->second.up);
  };
  const bool adapted = std::ranges::any_of(weights.layers, [](const auto& layer) { return !layer.low_rank.empty(); });
  const SlotTargets targets(weights);
  for (const TensorSlot& slot : tensor_slots(config, tensor_names(family_named(config.family, "model"), config))) {
    for (std::size_t part = 0; part < slot.parts.size(); ++part) {
      if (role_of(slot.parts[part]) != role) continue;
      if (adapted && role == WeightRole::weight && slot.parts[part].kind != WeightField::Kind::filter) {
        if (slot.layer >= 0) add_factors(slot, part);
        continue;
      }
      add(name_of_part(slot, part), targets.of(slot, slot.parts[part]));
    }
  }
  return parameters;
}

}  // namespace gainlens::models
