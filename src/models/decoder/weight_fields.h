#pragma once

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
    precision,   ///< of the filter, learned at a rate of its own
    constant,    ///< of the filter, not learned
  };

  std::string_view name;  ///< "attention_norm"; tensors_by_field() (decoder_weights.h) finds its tensor
  Kind kind;
  std::vector<std::int64_t> shape;
  bool wanted;                       ///< an unwanted tensor stays undefined
  std::optional<double> start = {};  ///< of the filter's, before training; absent: drawn
};

/// Every tensor of one layer.
std::vector<WeightField> layer_fields(const DecoderConfig& config, std::int64_t layer);
/// Every tensor outside the layers. A tied head is not wanted.
std::vector<WeightField> outer_fields(const DecoderConfig& config);

}  // namespace gainlens::models
