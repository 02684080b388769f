#pragma once

#include "bft/filter_slots.h"
#include "bft/filter_weights.h"
#include "recommend/weight_slot.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// What the layers of several backbones are made of.

namespace gainlens::recommend {

/// A linear layer: weight [out, in] and bias [out].
struct LinearWeights {
  at::Tensor weight, bias;
};
/// A layer norm: weight and bias, [width].
struct NormWeights {
  at::Tensor weight, bias;
};

/// Collects the weights of a model in their order.
class SlotList {
 public:
  void drawn(std::string name, at::Tensor& tensor, std::vector<std::int64_t> shape,
             WeightRole role = WeightRole::weight);
  void add(std::string name, at::Tensor& tensor, std::vector<std::int64_t> shape, WeightRole role, double start);
  void norm(const std::string& name, NormWeights& norm, std::int64_t width);
  void linear(const std::string& name, LinearWeights& linear, std::int64_t out, std::int64_t in);
  /// @param weights  bft::FilterWeights or bft::InitialPrecisionWeights
  template <typename Weights>
  void filter(const std::string& prefix, const std::vector<bft::FilterSlot>& slots, Weights& weights) {
    const auto tensors = bft::tensors_by_name(weights);
    for (const bft::FilterSlot& slot : slots)
      slots_.push_back({prefix + std::string(slot.name), slot.shape, tensors.at(slot.name), slot.role, slot.start});
  }
  std::vector<WeightSlot> take() { return std::move(slots_); }

 private:
  std::vector<WeightSlot> slots_;
};

/// Gives each weight what it begins with: leaf tensors, with gradients but for the constants. Row 0 of the item
/// embedding is 0: it is padding.
/// @param embeddings  the embeddings of items and of positions, whose deviation is `embedding_deviation`
void set_initial(const std::vector<WeightSlot>& slots, std::uint64_t seed, const at::Tensor& item_embedding,
                 const at::Tensor& position_embedding, double embedding_deviation);

/// @throws InvalidArgument  a number of the filter that no training writes
void check_stored_filter(const bft::InitialPrecisionWeights& precision,
                         const std::vector<const bft::FilterWeights*>& layers, const std::string& where);

/// Gives weights what is stored of them.
/// @param slots  of these weights
/// @throws InvalidArgument  as check_stored_filter(), and what `source` refuses
template <typename Weights>
void read_stored(Weights& weights, const std::vector<WeightSlot>& slots, const WeightSource& source) {
  for (const WeightSlot& slot : slots) *slot.tensor = source.read(slot);
  std::vector<const bft::FilterWeights*> filters;
  filters.reserve(weights.layers.size());
  for (const auto& layer : weights.layers) filters.push_back(&layer.filter);
  check_stored_filter(weights.precision, filters, source.where);
}

}  // namespace gainlens::recommend
