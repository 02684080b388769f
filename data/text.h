#pragma once

#include "tokenizers/tokenizer.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::data {

/// Plain or gzipped UTF-8 text, whole.
/// @param most_bytes  of the unpacked text. It is refused as soon as so many bytes are unpacked
/// @throws InvalidArgument  missing, unreadable, empty, broken gzip, not UTF-8 (byte offset), or larger than
/// `most_bytes`
std::string read_text(const std::filesystem::path& path, std::uint64_t most_bytes = std::uint64_t{4} << 30);

/// An array of token ids in JSON, plain or gzipped.
/// @throws InvalidArgument  not an array of integers in [0, 2^31)
std::vector<tokenizers::TokenId> read_token_ids(const std::filesystem::path& path);

}  // namespace gainlens::data
