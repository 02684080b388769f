#pragma once

#include "models/decoder/decoder_config.h"
#include "models/families/config_reader.h"
#include "models/families/gguf_config.h"
#include "models/families/tensor_names.h"

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::models {

/// Reads which layers have linear attention by the gated delta rule, and the sizes of these layers (`linear_*`). The
/// layers are given by `layer_types`. Without it, each `full_attention_interval`-th layer has softmax attention
/// (default 4) and the others have linear attention.
/// @throws InvalidArgument  as ConfigReader; `layer_types` has the wrong length or another name; the number of value
///     heads is not a multiple of that of key heads; the rule is computed in another precision than float32
DeltaLayers parse_delta_layers(ConfigReader& reader, std::int64_t layers);

/// What their GGUF files share: names of tensors, names of metadata, and what `complete` has to do.
TensorNames gguf_delta_names();
std::vector<std::pair<std::string_view, std::string_view>> gguf_delta_keys();
/// @throws InvalidArgument  a size of the layers of linear attention is missing, or they do not fit each other
void complete_delta(GgufConfig& gguf);

/// The names of what the layers of Qwen 3 Next and 3.5 share: gates by head, the short convolution, the rule.
TensorNames delta_names();

}  // namespace gainlens::models
