#pragma once

#include "models/decoder/decoder_config.h"
#include "models/decoder/decoder_weights.h"
#include "models/families/tensor_names.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::models {

/// Where a part of a stored tensor goes.
struct SlotPart {
  at::Tensor* target = nullptr;
  std::vector<std::int64_t> shape;  ///< of the part
  WeightField::Kind kind{};
  std::int64_t expert = -1;  ///< the part is this expert's share of a stack [experts, ...]; -1: it is the whole target
  std::int64_t experts = 0;  ///< size of that stack
};

/// One tensor a decoder needs from its checkpoint: what it is called there, its shape there, and which of the decoder's
/// tensors it holds.
struct TensorSlot {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<SlotPart> parts;  ///< one after the other along `row_dimension`, as `order` says
  RowOrder order = RowOrder::sequential;
  std::int64_t groups = 1;  ///< RowOrder::grouped
  std::int64_t row_dimension = 0;
  bool transposed = false;        ///< stored with its last two dimensions swapped
  std::int64_t rotary_heads = 0;  ///< > 0: so many heads, each with the two halves of a rotary pair side by side
};

/// The parts of a stored tensor, each contiguous; they may lie in the memory of `stored`.
/// @param stored  of the slot's shape
std::vector<at::Tensor> unpack(const TensorSlot& slot, const at::Tensor& stored);

/// The inverse of unpack.
at::Tensor pack(const TensorSlot& slot, const std::vector<at::Tensor>& parts);

/// The parts of a slot as they lie in its targets.
std::vector<at::Tensor> targets_of(const TensorSlot& slot);

/// Puts unpacked parts into the targets; a stack of experts is made when its first expert comes.
void fill_targets(const TensorSlot& slot, std::vector<at::Tensor> parts);

/// Every tensor outside the layers, embedding first; the head comes last and is left out where it is tied.
/// @param weights  the slots point into it
std::vector<TensorSlot> outer_slots(const DecoderConfig& config, const TensorNames& names, DecoderWeights& weights);

/// Every tensor of one layer.
std::vector<TensorSlot> layer_slots(const DecoderConfig& config, const TensorNames& names, std::int64_t layer,
                                    LayerWeights& weights);

/// Every tensor of a checkpoint of this configuration: embedding, layers, final norm, head.
/// @param weights  gets its layers; the slots point into it
std::vector<TensorSlot> tensor_slots(const DecoderConfig& config, const TensorNames& names, DecoderWeights& weights);

}  // namespace gainlens::models
