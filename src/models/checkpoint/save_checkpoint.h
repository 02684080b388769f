#pragma once

#include "core/json.h"
#include "models/checkpoint/named_tensor.h"
#include "models/decoder/decoder_config.h"
#include "models/decoder/decoder_weights.h"

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::models {

/// The tensors of a checkpoint of this family: names and shapes as load_checkpoint reads them, gate rows put back into
/// the query projection, a tied head left out.
std::vector<NamedTensor> checkpoint_tensors(const DecoderConfig& config, DecoderWeights weights);

/// Writes config.json and model.safetensors in Hugging Face layout, each atomically; load_checkpoint reads them back.
///
/// @param document  config.json as it will stand; parse_decoder_config(document) gives the configuration of `weights`
/// @param dtype     of the stored weights: float32, bfloat16, float16 or float64
/// @throws InvalidArgument  the folder cannot be written to; a weight that `dtype` cannot hold
/// @throws RunFailed        disk full
void save_checkpoint(const std::filesystem::path& folder, const OrderedJson& document, const DecoderWeights& weights,
                     at::ScalarType dtype);

}  // namespace gainlens::models
