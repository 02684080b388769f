#pragma once

#include <cstdint>
#include <filesystem>
#include <system_error>

namespace gainlens::tokenizers {

// The names a checkpoint folder gives to the parts of its tokenizer.
inline constexpr const char* tokenizer_json_file = "tokenizer.json";
inline constexpr const char* sentencepiece_file = "tokenizer.model";
inline constexpr const char* vocabulary_file = "vocab.json";
inline constexpr const char* merges_file = "merges.txt";
inline constexpr const char* tokenizer_config_file = "tokenizer_config.json";

inline constexpr std::uint64_t largest_tokenizer_file = std::uint64_t{256} << 20;  ///< bytes, unpacked

/// Whether something has this name. A loop of links has; the reader that opens it then says what is wrong.
inline bool is_there(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::exists(file, error) || error;
}

}  // namespace gainlens::tokenizers
