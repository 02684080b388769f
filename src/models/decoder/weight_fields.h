#pragma once

#include "bft/filter_slots.h"
#include "models/decoder/decoder_config.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace gainlens::models {

/// One tensor that a configuration may ask for.
struct WeightField {
  enum class Kind {
    embedding,
    projection,
    convolution,
    norm,
    bias,
    logit,
    correction,  ///< of a router's scores; float32 at least
    filter,      ///< of the filter, learned as the others
    precision,   ///< of the filter, learned at a rate of its own
    constant,    ///< of the filter, not learned
  };

  std::string_view name;  ///< "attention_norm"; tensors_by_field() (decoder_weights.h) finds its tensor
  Kind kind;
  std::vector<std::int64_t> shape;
  bool wanted;                       ///< an unwanted tensor stays undefined
  std::optional<double> start = {};  ///< of the filter's, before training; absent: drawn
};

/// The weights of the filter of one layer; none without a filter.
std::vector<bft::FilterSlot> filter_slots(const DecoderConfig& config, std::int64_t layer);
/// What the precision of tokens before the first layer follows from, in the order of a checkpoint.
std::vector<bft::FilterSlot> token_precision_slots(const DecoderConfig& config);

/// Every tensor of one layer.
std::vector<WeightField> layer_fields(const DecoderConfig& config, std::int64_t layer);
/// Every tensor outside the layers. A tied head is not wanted.
std::vector<WeightField> outer_fields(const DecoderConfig& config);

}  // namespace gainlens::models
