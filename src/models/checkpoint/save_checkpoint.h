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

/// The tensors of a checkpoint of this family, with the names and shapes that load_checkpoint reads. The rows of a gate
/// are put back into the query projection. A tied head is left out.
std::vector<NamedTensor> checkpoint_tensors(const DecoderConfig& config, DecoderWeights weights);

/// Writes config.json and model.safetensors in Hugging Face layout, each atomically. load_checkpoint can read them.
///
/// @param document  the content of config.json; parse_decoder_config(document) must give the configuration of `weights`
/// @param dtype     of the stored weights: float32, bfloat16, float16 or float64
/// @throws InvalidArgument  the folder cannot be written to; a weight that `dtype` cannot hold
/// @throws RunFailed        the disk is full
void save_checkpoint(const std::filesystem::path& folder, const OrderedJson& document, const DecoderWeights& weights,
                     at::ScalarType dtype);

}  // namespace gainlens::models
