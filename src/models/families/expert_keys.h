#pragma once

#include "models/decoder/decoder_config.h"
#include "models/families/config_reader.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace gainlens::models {

/// Number of experts, under the family's key, and num_experts_per_tok.
/// @throws InvalidArgument  as ConfigReader; more per token than there are
Experts parse_experts(ConfigReader& reader, std::string_view count_key, std::int64_t default_count,
                      std::int64_t default_per_token);

/// What a family with experts carries for training its router.
std::vector<std::string_view> router_training_keys();

}  // namespace gainlens::models
