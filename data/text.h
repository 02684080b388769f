#pragma once

#include "tokenizers/tokenizer.h"

#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::data {

/// Plain or gzipped UTF-8 text, whole.
/// @throws InvalidArgument  missing, unreadable, empty, broken gzip, not UTF-8 (byte offset), or larger than 4 GiB when
///     unpacked
std::string read_text(const std::filesystem::path& path);

/// An array of token ids in JSON, plain or gzipped.
/// @throws InvalidArgument  not an array of integers in [0, 2^31)
std::vector<tokenizers::TokenId> read_token_ids(const std::filesystem::path& path);

}  // namespace gainlens::data
