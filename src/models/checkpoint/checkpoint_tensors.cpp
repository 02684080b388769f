#include "models/checkpoint/checkpoint_tensors.h"

#include "formats/mapped_file.h"
#include "models/checkpoint/slot_tensors.h"
#include "models/checkpoint/stored_tensors.h"
#include "models/checkpoint/tensor_values.h"

#include <ATen/ATen.h>

#include <vector>

namespace gainlens::models {
namespace {

void load_slots(const CheckpointSource& source, at::ScalarType dtype, const std::vector<TensorSlot>& slots,
                const SlotTargets& targets) {
  for (const TensorSlot& slot : slots) {
    const StoredTensor stored = stored_for(source, slot);
    at::Tensor values = stored.scaled != nullptr ? read_values(*stored.scaled, dtype, source.where())
                                                 : read_values(*stored.entry, dtype, source.where());
    // So memory holds the model once plus one tensor, not the model twice.
    formats::release_pages(stored.scaled != nullptr ? stored.scaled->numbers.bytes : stored.entry->bytes);
    if (stored.swapped) values = values.transpose(-1, -2);
    targets.fill(slot, unpack(slot, values));
  }
}

}  // namespace

DecoderWeights load_outer(const CheckpointSource& source, at::ScalarType dtype) {
  DecoderWeights weights;
  load_slots(source, dtype, outer_slots_of(source), SlotTargets(weights));
  if (source.config.tied_head) weights.head = weights.embedding;
  return weights;
}

LayerWeights load_layer(const CheckpointSource& source, std::int64_t layer, at::ScalarType dtype) {
  LayerWeights weights;
  load_slots(source, dtype, layer_slots(source.config, source.names, layer), SlotTargets(layer, weights));
  return weights;
}

}  // namespace gainlens::models
