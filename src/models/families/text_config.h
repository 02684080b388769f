#pragma once

#include "models/decoder/decoder_config.h"
#include "models/families/config_reader.h"

#include <string_view>

namespace gainlens::models {

/// Reads the text model inside a multimodal checkpoint: the object `text_config`, and `tie_word_embeddings` and
/// `bos_token_id` beside it.
/// @param family  of the multimodal checkpoint; that of its text model has the same name and "_text"
/// @throws InvalidArgument  there is no text_config, or it names another family or class; a key of it is refused
///     (check_other_keys); the two BOS differ
DecoderConfig parse_text_config(ConfigReader& reader, std::string_view family);

}  // namespace gainlens::models
