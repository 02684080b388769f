#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace gainlens::formats {

/// Whether the content starts like a checkpoint that PyTorch pickled: a zip archive, or a pickle of protocol 2 to 5. A
/// safetensors file may start with the same bytes (its header length may be 640), so ask only after the content has
/// failed to be one.
bool looks_pickled(std::span<const std::byte> content);

/// Whether the file's name is one that pickled weights go by: .bin, .pt, .pth, .ckpt, .pkl.
bool named_like_pickle(const std::filesystem::path& path);

/// The pickled weights in a folder by name, sorted; optimizer states and the like left out.
std::vector<std::filesystem::path> pickled_weights(const std::filesystem::path& folder);

/// A command that turns pickled files into one `model.safetensors`. Pickles are programs: loading one may run anything,
/// and gainlens does not.
std::string conversion_command(const std::vector<std::filesystem::path>& pickled);

}  // namespace gainlens::formats
