#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace gainlens::formats {

/// Whether the content starts like a checkpoint that PyTorch pickled: a zip archive, or a pickle of protocol 2 to 5. A
/// safetensors file may start with the same bytes (its header length may be 640), so ask only after reading the content
/// as safetensors has failed.
bool looks_pickled(std::span<const std::byte> content);

/// Whether the file name has an extension that pickled weights have: .bin, .pt, .pth, .ckpt, .pkl.
bool named_like_pickle(const std::filesystem::path& path);

/// The pickled weights in a folder, sorted by name, without optimizer states and similar files.
std::vector<std::filesystem::path> pickled_weights(const std::filesystem::path& folder);

/// A command that turns pickled files into one `model.safetensors`. Loading a pickle may run any program, so gainlens
/// does not load pickles.
std::string conversion_command(const std::vector<std::filesystem::path>& pickled);

}  // namespace gainlens::formats
