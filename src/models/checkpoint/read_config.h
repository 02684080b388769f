#pragma once

#include "core/json.h"
#include "models/decoder/decoder_config.h"

#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::models {

/// Keys of config.json that are not read, as if the file did not have them: "logit_scale", "rope_scaling.attn_factor".
/// They are for users who know that a key that gainlens refuses changes nothing, and who cannot edit the file.
using IgnoredKeys = std::vector<std::string>;

/// Reads only config.json, or only the metadata of a GGUF file.
///
/// @param path  a folder in Hugging Face layout, a Hugging Face cache folder (formats::resolve_checkpoint_folder), a
///     GGUF file (any part of a split one), a folder with a GGUF file, or the folder of an adapter (its base is read)
/// @param ignored  keys of config.json that are not read
/// @throws InvalidArgument  the file does not exist; no family has this model_type or architecture; the file names a
///     class or code of its own, which may compute something else; an ignored key is not there; a key is missing,
///     of the wrong type, out of range, or unknown (it may change the mathematics); sizes do not fit together; the
///     folder has both safetensors and GGUF. The message names the file, the key, what was found and what is allowed
DecoderConfig read_decoder_config(const std::filesystem::path& path, const IgnoredKeys& ignored = {});

/// The same for a config.json that is not stored in a file.
/// @param where  its name in messages
DecoderConfig parse_decoder_config(const Json& document, const std::string& where);

}  // namespace gainlens::models
