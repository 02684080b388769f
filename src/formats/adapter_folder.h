#pragma once

#include "core/environment.h"

#include <filesystem>
#include <optional>

namespace gainlens::formats {

inline constexpr const char* adapter_config_name = "adapter_config.json";
inline constexpr const char* adapter_weights_name = "adapter_model.safetensors";

/// The folder that holds the adapter that `path` stands for: `path` itself if it has an adapter_config.json and no
/// weights of a whole model, or the snapshot of a Hugging Face cache folder. Nothing if `path` is no adapter.
/// @throws InvalidArgument  the folder has both an adapter and the weights of a model: either could be meant; its
///     adapter_config.json is no regular file
std::optional<std::filesystem::path> find_adapter(const std::filesystem::path& path);

/// The model that an adapter changes: what its base_model_name_or_path names, found as locate_checkpoint() and
/// resolve_checkpoint_folder() do; a GGUF file or a folder with one is returned as it is. A relative path is looked for
/// in the folder of the adapter first, then in the working directory.
/// @param folder  of find_adapter()
/// @throws InvalidArgument  adapter_config.json cannot be read, or names no model; the model is not there, or is itself
///     an adapter
std::filesystem::path adapter_base(const std::filesystem::path& folder,
                                   const Environment& environment = process_environment());

}  // namespace gainlens::formats
