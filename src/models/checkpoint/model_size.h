#pragma once

#include "models/decoder/decoder_config.h"

#include <cstdint>

namespace gainlens::models {

/// Number of trained parameters: the elements of all tensors but the constants of a filter. A tied head
/// counts once.
/// @throws InvalidArgument  the number exceeds int64
std::int64_t parameter_count(const DecoderConfig& config);

}  // namespace gainlens::models
