#pragma once

#include "hooks/hooked_model.h"
#include "models/checkpoint/checkpoint.h"

#include <filesystem>
#include <memory>

namespace gainlens::models {

class Decoder;

/// Loads a decoder, ready to run, from a folder or a GGUF file.
/// @throws InvalidArgument  as load_checkpoint; a decoder with a filter on a GPU
std::unique_ptr<hooks::HookedModel> load_decoder(const std::filesystem::path& path, const LoadOptions& options = {});

/// The same, for callers that need more of a decoder than what every model has. They include models/decoder/decoder.h.
std::unique_ptr<Decoder> load_own_decoder(const std::filesystem::path& path, const LoadOptions& options = {});

}  // namespace gainlens::models
