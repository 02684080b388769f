#pragma once

#include "models/decoder/decoder_config.h"
#include "models/families/common_keys.h"
#include "models/families/config_reader.h"

#include <span>
#include <string_view>

namespace gainlens::models {

/// Checks the keys of a config.json that its family did not read. A key passes
/// - if its value is null
/// - if it is in `inert`, or inert by its kind (inert_keys.h)
/// - if it states what the decoder computes anyway: a size, number or switch in another spelling (`n_head` beside
///   `num_attention_heads`), or a part that this decoder does not have, at the value of its absence (`lm_head_bias`:
///   false)
/// - if it is a limit on the length of texts, or a window that `use_sliding_window` switches off.
///
/// @param config  what was read from the other keys
/// @param keys    the family's spellings, for messages
/// @throws InvalidArgument  a key states something else (the message gives both), or is unknown
void check_other_keys(const ConfigReader& reader, const DecoderConfig& config, const CommonKeys& keys,
                      std::span<const std::string_view> inert);

}  // namespace gainlens::models
