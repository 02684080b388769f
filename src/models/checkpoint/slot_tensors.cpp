#include "models/checkpoint/slot_tensors.h"

#include "core/check.h"

#include <ATen/ATen.h>

#include <utility>

namespace gainlens::models {
namespace {

/// Reorders the rotated rows of each head from (pair, half) to (half, pair), or back.
at::Tensor reordered_pairs(const TensorSlot& slot, const at::Tensor& rows, bool stored) {
  const at::Tensor heads = rows.unflatten(0, {slot.rotary_heads, -1});  // [head, head_dim, ..]
  const std::int64_t rest = heads.size(1) - slot.rotary_dimensions;
  const at::Tensor rotated = heads.narrow(1, slot.rotary_at_end ? rest : 0, slot.rotary_dimensions);
  const std::int64_t pairs = slot.rotary_dimensions / 2;
  const at::Tensor split = stored ? rotated.unflatten(1, {pairs, 2}) : rotated.unflatten(1, {2, pairs});
  const at::Tensor reordered = split.transpose(1, 2).flatten(1, 2);
  if (rest == 0) return reordered.flatten(0, 1);
  if (slot.rotary_at_end) return at::cat({heads.narrow(1, 0, rest), reordered}, 1).flatten(0, 1);
  return at::cat({reordered, heads.narrow(1, slot.rotary_dimensions, rest)}, 1).flatten(0, 1);
}

/// Reorders value heads from the order of storage to that of the decoder, or back.
at::Tensor reordered_heads(const TiledHeads& heads, const at::Tensor& x, bool stored) {
  const std::int64_t dimension = heads.dimension, count = x.size(dimension) - heads.begin;
  const at::Tensor tiled = x.narrow(dimension, heads.begin, count);
  const std::int64_t outer = stored ? heads.served : heads.key_heads, inner = stored ? heads.key_heads : heads.served;
  const at::Tensor reordered = tiled.unflatten(dimension, {outer, inner, -1})
                                   .transpose(dimension, dimension + 1)
                                   .flatten(dimension, dimension + 2);
  return heads.begin == 0 ? reordered : at::cat({x.narrow(dimension, 0, heads.begin), reordered}, dimension);
}

std::int64_t rows_of(const TensorSlot& slot, const SlotPart& part) {
  return part.shape[static_cast<std::size_t>(slot.row_dimension)];
}

}  // namespace

std::vector<at::Tensor> unpack(const TensorSlot& slot, const at::Tensor& stored) {
  ASSERT(stored.sizes() == at::IntArrayRef(slot.shape), "'{}' is not of its slot's shape", slot.name);
  at::Tensor rows = slot.transposed ? stored.transpose(-1, -2) : stored;
  if (slot.stacked_heads > 0) rows = rows.flatten(0, 1);
  if (slot.rotary_heads > 0) rows = reordered_pairs(slot, rows, true);
  if (slot.tiled) rows = reordered_heads(*slot.tiled, rows, true);
  if (slot.exponential) rows = rows.neg().log();
  const std::int64_t dimension = slot.row_dimension;
  std::vector<at::Tensor> parts;
  if (slot.parts.size() == 1) {
    parts.push_back(rows);
  } else if (slot.order == RowOrder::alternating) {
    const auto count = static_cast<std::int64_t>(slot.parts.size());
    for (std::int64_t part = 0; part < count; ++part)
      parts.push_back(rows.slice(dimension, part, rows.size(dimension), count));
  } else {
    const std::int64_t groups = slot.order == RowOrder::grouped ? slot.groups : 1;
    const at::Tensor grouped = rows.unflatten(dimension, {groups, -1});
    std::int64_t begin = 0;
    for (const SlotPart& part : slot.parts) {
      const std::int64_t count = rows_of(slot, part) / groups;
      parts.push_back(grouped.narrow(dimension + 1, begin, count).flatten(dimension, dimension + 1));
      begin += count;
    }
  }
  for (at::Tensor& part : parts) part = part.is_same(stored) ? part : part.contiguous();
  return parts;
}

at::Tensor pack(const TensorSlot& slot, const std::vector<at::Tensor>& parts) {
  ASSERT(parts.size() == slot.parts.size(), "'{}': {} parts for {}", slot.name, parts.size(), slot.parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    ASSERT(parts[i].sizes() == at::IntArrayRef(slot.parts[i].shape), "'{}': part {} is not of its slot's shape",
           slot.name, i);
  }
  const std::int64_t dimension = slot.row_dimension;
  at::Tensor rows = parts.front();
  if (parts.size() > 1 && slot.order == RowOrder::alternating) {
    rows = at::stack(parts, dimension + 1).flatten(dimension, dimension + 1);
  } else if (parts.size() > 1) {
    const std::int64_t groups = slot.order == RowOrder::grouped ? slot.groups : 1;
    std::vector<at::Tensor> grouped;
    grouped.reserve(parts.size());
    for (const at::Tensor& part : parts) grouped.push_back(part.unflatten(dimension, {groups, -1}));
    rows = at::cat(grouped, dimension + 1).flatten(dimension, dimension + 1);
  }
  if (slot.exponential) rows = rows.exp().neg();
  if (slot.tiled) rows = reordered_heads(*slot.tiled, rows, false);
  if (slot.rotary_heads > 0) rows = reordered_pairs(slot, rows, false);
  if (slot.stacked_heads > 0) rows = rows.unflatten(0, {slot.stacked_heads, -1});
  return (slot.transposed ? rows.transpose(-1, -2) : rows).contiguous();
}

SlotTargets::SlotTargets(DecoderWeights& weights) {
  layers_.emplace(-1, tensors_by_field(weights));
  for (std::size_t layer = 0; layer < weights.layers.size(); ++layer)
    layers_.emplace(static_cast<std::int64_t>(layer), tensors_by_field(weights.layers[layer]));
}

SlotTargets::SlotTargets(std::int64_t layer, LayerWeights& weights) {
  layers_.emplace(layer, tensors_by_field(weights));
}

at::Tensor& SlotTargets::of(const TensorSlot& slot, const SlotPart& part) const {
  const auto layer = layers_.find(slot.layer);
  ASSERT(layer != layers_.end(), "'{}' is of layer {}, which these weights do not have", slot.name, slot.layer);
  const auto tensor = layer->second.find(part.field);
  ASSERT(tensor != layer->second.end(), "'{}': no tensor is called {}", slot.name, part.field);
  return *tensor->second;
}

std::vector<at::Tensor> SlotTargets::parts(const TensorSlot& slot) const {
  std::vector<at::Tensor> parts;
  for (const SlotPart& part : slot.parts)
    parts.push_back(part.expert < 0 ? of(slot, part) : of(slot, part).select(0, part.expert));
  return parts;
}

void SlotTargets::fill(const TensorSlot& slot, std::vector<at::Tensor> parts) const {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const SlotPart& part = slot.parts[i];
    at::Tensor& target = of(slot, part);
    if (part.expert < 0) {
      target = std::move(parts[i]);
      continue;
    }
    if (!target.defined()) {
      std::vector<std::int64_t> shape{part.experts};
      shape.insert(shape.end(), part.shape.begin(), part.shape.end());
      target = at::empty(shape, parts[i].options());
    }
    target.select(0, part.expert).copy_(parts[i]);
  }
}

}  // namespace gainlens::models
