#include "models/checkpoint/checkpoint_tensors.h"

#include "core/error.h"
#include "formats/mapped_file.h"
#include "models/checkpoint/lora_weights.h"
#include "models/checkpoint/slot_tensors.h"
#include "models/checkpoint/stored_tensors.h"
#include "models/checkpoint/tensor_values.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace gainlens::models {
namespace {

/// @throws InvalidArgument  a number has no logarithm
void check_exponential(const CheckpointSource& source, const TensorSlot& slot, const at::Tensor& values) {
  const at::Tensor wrong = values.flatten().ge(0).nonzero();
  if (wrong.numel() == 0) return;
  const auto first = wrong[0].item<std::int64_t>();
  throw_invalid("{}: '{}' is {} at index {}; must be below 0, as it is -exp of a logarithm", source.where(), slot.name,
                values.flatten()[first].item<double>(), first);
}

void load_slots(const CheckpointSource& source, const ComputePlace& place, const std::vector<TensorSlot>& slots,
                const SlotTargets& targets) {
  const at::ScalarType dtype = place.dtype;
  const at::ScalarType wide = dtype == at::kDouble ? dtype : at::kFloat;
  const LoraChanges changes = source.adapter ? lora_changes(*source.adapter, slots.front().layer, wide) : LoraChanges();
  const auto change_of = [&](const SlotPart& part) {
    const auto found = changes.find({part.field, part.expert});
    return found == changes.end() ? at::Tensor() : found->second;
  };
  for (const TensorSlot& slot : slots) {
    const StoredTensor stored = stored_for(source, slot);
    // A logarithm is taken, and an adapter added, before it is rounded to the compute dtype. A correction is not
    // rounded.
    const bool correction = slot.parts.front().kind == WeightField::Kind::correction;
    const bool changed =
        std::any_of(slot.parts.begin(), slot.parts.end(), [&](const auto& part) { return change_of(part).defined(); });
    const at::ScalarType read = slot.exponential || correction || changed ? wide : dtype;
    at::Tensor values = stored.scaled != nullptr ? read_values(*stored.scaled, read, source.where())
                                                 : read_values(*stored.entry, read, source.where());
    // So memory does not hold the model twice. Plain values were given back while they were read.
    formats::release_pages(stored.scaled != nullptr ? stored.scaled->numbers.bytes : stored.entry->bytes);
    if (stored.swapped) values = values.transpose(-1, -2);
    if (values.sizes() != at::IntArrayRef(slot.shape)) values = values.view(slot.shape);  // sizes of 1
    if (slot.exponential) check_exponential(source, slot, values);
    std::vector<at::Tensor> parts = unpack(slot, values);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (const at::Tensor change = change_of(slot.parts[i]); change.defined()) parts[i].add_(change);
      parts[i] = parts[i].to(place.device, correction ? read : dtype);
    }
    targets.fill(slot, std::move(parts));
  }
}

}  // namespace

DecoderWeights load_outer(const CheckpointSource& source, const ComputePlace& place) {
  DecoderWeights weights;
  load_slots(source, place, outer_slots_of(source), SlotTargets(weights));
  if (source.config.tied_head) weights.head = weights.embedding;
  return weights;
}

LayerWeights load_layer(const CheckpointSource& source, std::int64_t layer, const ComputePlace& place) {
  LayerWeights weights;
  load_slots(source, place, layer_slots(source.config, source.names, layer), SlotTargets(layer, weights));
  return weights;
}

}  // namespace gainlens::models
