#pragma once

#include "models/checkpoint/lora_adapter.h"
#include "models/decoder/decoder_config.h"
#include "models/decoder/decoder_weights.h"

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The tensors of low-rank adapters: read into weights, begun, merged and written. lora_adapter.h has their files.

namespace gainlens::models {

/// What an adapter adds to the tensors of one layer, each by its field and its expert (-1: the whole tensor).
using LoraChanges = std::map<std::pair<std::string_view, std::int64_t>, at::Tensor>;

/// @param layer  -1: outside the layers
/// @param dtype  of the products: float32 or float64
/// @throws InvalidArgument  as read_values; a product that is not finite
LoraChanges lora_changes(const LoraAdapter& adapter, std::int64_t layer, at::ScalarType dtype);

/// An adapter that is trained.
struct LoraOptions {
  std::int64_t rank = 8;
  double alpha = 16;                 ///< what it adds is multiplied by alpha / rank
  std::vector<std::string> targets;  ///< of lora_targets(); empty: all that the model has
};

/// Begins an adapter: gives every target projection of the weights its factors, float32, each a leaf that requires
/// gradients. A is uniform within 1/sqrt(inputs), as PEFT draws it; B is 0, so the model is exactly the base. The
/// weights need none themselves.
/// @param seed  the same seed gives the same factors, whatever else the model has
/// @throws InvalidArgument  as lora_modules() and lora_parameter_count()
void begin_lora(const DecoderConfig& config, const LoraOptions& options, std::uint64_t seed, DecoderWeights& weights);

/// The weights with the changes of their adapter in them, and without adapter. What it does not change is shared.
DecoderWeights merged(DecoderWeights weights);

/// Writes adapter_config.json and adapter_model.safetensors as PEFT does, each atomically: open_lora_adapter() and PEFT
/// read them.
/// @param base     path or name on the Hub of the model whose projections are changed
/// @param weights  of begin_lora()
/// @throws InvalidArgument  the folder cannot be written to
/// @throws RunFailed        the disk is full; a factor is not finite
void save_lora_adapter(const std::filesystem::path& folder, const DecoderConfig& config, const LoraOptions& options,
                       const std::string& base, DecoderWeights weights);

}  // namespace gainlens::models
