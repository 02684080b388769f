#pragma once

#include "models/decoder/decoder_config.h"
#include "models/decoder/weight_fields.h"
#include "models/families/tensor_names.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::models {

/// The place of one part of a stored tensor in the decoder.
struct SlotPart {
  std::string_view field;           ///< WeightField::name of the tensor that holds it
  std::vector<std::int64_t> shape;  ///< of the part
  WeightField::Kind kind{};
  std::int64_t expert = -1;  ///< the part is the row of this expert in a stack [experts, ...]; -1: the whole tensor
  std::int64_t experts = 0;  ///< number of experts in the stack
  std::optional<double> start = {};  ///< as WeightField
};

/// Value heads that are stored in turns along one dimension: the first of every key head, the second of every key head,
/// and so on. The decoder has those of the first key head first.
struct TiledHeads {
  std::int64_t dimension = 0;
  std::int64_t begin = 0;  ///< index along the dimension where the value heads begin; they reach to its end
  std::int64_t key_heads = 0;
  std::int64_t served = 0;  ///< value heads of each key head
};

/// One tensor that a decoder needs from its checkpoint: its name and shape there, and which tensors of the decoder it
/// holds.
struct TensorSlot {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<SlotPart> parts;  ///< joined along `row_dimension` in the way that `order` says
  RowOrder order = RowOrder::sequential;
  std::int64_t groups = 1;  ///< number of groups for RowOrder::grouped
  std::int64_t row_dimension = 0;
  bool transposed = false;  ///< stored with its last two dimensions swapped
  /// If positive, stored as a stack [head, rows of a head, ..], before that swap.
  std::int64_t stacked_heads = 0;
  /// If positive, the number of heads whose rows are stored with the two halves of each rotary pair side by side.
  std::int64_t rotary_heads = 0;
  std::int64_t rotary_dimensions = 0;  ///< of each of these heads, the first ones; the others are stored in order
  bool rotary_at_end = false;          ///< the last ones instead
  std::optional<TiledHeads> tiled = {};
  bool exponential = false;  ///< stored as -exp of its values, all below 0
  std::int64_t layer = -1;   ///< -1: outside the layers
};

/// Every tensor outside the layers. The embedding comes first. The head comes last; a tied head is left out.
std::vector<TensorSlot> outer_slots(const DecoderConfig& config, const TensorNames& names);

/// Every tensor of one layer.
std::vector<TensorSlot> layer_slots(const DecoderConfig& config, const TensorNames& names, std::int64_t layer);

/// Every tensor of a checkpoint of this configuration: embedding, layers, final norm, head.
std::vector<TensorSlot> tensor_slots(const DecoderConfig& config, const TensorNames& names);

}  // namespace gainlens::models
