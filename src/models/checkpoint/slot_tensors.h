#pragma once

#include "models/checkpoint/tensor_slots.h"
#include "models/decoder/decoder_weights.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

namespace gainlens::models {

/// Splits a stored tensor into its parts, each contiguous. They may use the memory of `stored`.
/// @param stored  has the slot's shape
std::vector<at::Tensor> unpack(const TensorSlot& slot, const at::Tensor& stored);

/// The inverse of unpack.
at::Tensor pack(const TensorSlot& slot, const std::vector<at::Tensor>& parts);

/// The tensors of a decoder that slots speak of. It points into the weights.
class SlotTargets {
 public:
  /// The targets of the tensors outside the layers, and of all layers that the weights have.
  explicit SlotTargets(DecoderWeights& weights);
  /// The targets of the slots of one layer.
  SlotTargets(std::int64_t layer, LayerWeights& weights);

  /// The tensor that holds the part. Of an expert: the stack.
  /// @throws InternalError  the weights do not have the layer or the field
  at::Tensor& of(const TensorSlot& slot, const SlotPart& part) const;

  /// The current values of a slot, one tensor for each part.
  std::vector<at::Tensor> parts(const TensorSlot& slot) const;
  /// Puts unpacked parts into their tensors. A stack of experts is allocated when its first expert comes.
  void fill(const TensorSlot& slot, std::vector<at::Tensor> parts) const;

 private:
  std::map<std::int64_t, TensorsByField> layers_;  // -1: outside the layers
};

}  // namespace gainlens::models
