#pragma once

#include "models/config_reader.h"
#include "models/decoder_config.h"

namespace gainlens::models {

/// Rotary embedding of a config.json: `rope_theta` with `rope_scaling`, or the newer `rope_parameters`, flat or one object per layer type.
/// Base 10,000 and no scaling where nothing is said.
///
/// Types: default, linear, llama3, yarn. Defaults are those of the field's Python implementation: original_max_position_embeddings is
/// max_position_embeddings; yarn's factor, where null or absent, their ratio; yarn's attention_factor is
/// m(factor, mscale) / m(factor, mscale_all_dim) where both are given and not 0, else m(factor, 1), with m(s, a) = 0.1 a ln(s) + 1: it is
/// always filled in here.
///
/// @param max_positions  max_position_embeddings
/// @throws InvalidArgument  another type (dynamic, longrope, ...) by name; a key the type does not have; a value out of range; two places
///                          that disagree; layer types that differ
RopeConfig parse_rope(ConfigReader& reader, std::int64_t max_positions);

}  // namespace gainlens::models
