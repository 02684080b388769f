#pragma once

#include "golden/golden.h"

#include <cstdint>
#include <filesystem>

namespace gainlens::golden {

/// What ends a text in tokenized_copy().
inline constexpr std::int32_t tokenized_end = 2;

/// Copies a golden checkpoint into a new folder, with a tokenizer for capital letters and spaces in place of its own,
/// if any: goldens are read by ids. Token 2 ends a text, and no BOS is added.
/// @param vocabulary  of the model; at least 32
/// @returns  the copy, a folder or a GGUF file
std::filesystem::path tokenized_copy(const Golden& golden, std::int64_t vocabulary,
                                     const std::filesystem::path& folder);

}  // namespace gainlens::golden
