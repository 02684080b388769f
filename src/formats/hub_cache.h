#pragma once

#include "core/environment.h"

#include <filesystem>
#include <optional>
#include <string>

namespace gainlens::formats {

/// Where programs of the Hugging Face Hub keep what they fetch: HF_HUB_CACHE, or HUGGINGFACE_HUB_CACHE, or `hub` in
/// HF_HOME, or `huggingface/hub` in XDG_CACHE_HOME, or `.cache/huggingface/hub` in HOME. Empty if none of these is set.
/// A variable that is set to nothing counts as not set. `~` at the start is HOME.
std::optional<std::filesystem::path> hub_cache_folder(const Environment& environment);

/// The checkpoint that a user names on the command line: `given` itself where it exists or is no name of the Hub, else
/// the snapshot of that model in the Hub's cache. Nothing is downloaded.
/// @param given  a path, or a name on the Hub: "organisation/name"
/// @throws InvalidArgument  a pipe or a device; a name of the Hub that is not in the cache, with the command that
/// fetches it; a cache that
///     lacks the snapshot, files of it, or all weights because a download has not finished
std::filesystem::path locate_checkpoint(const std::filesystem::path& given,
                                        const Environment& environment = process_environment());

/// Whether a text reads like the name of a model on the Hub: "organisation/name", of letters, digits, '-', '_' and '.',
/// without ".." and "--", and neither part begins or ends with '-' or '.'.
bool is_hub_name(const std::string& text);

}  // namespace gainlens::formats
