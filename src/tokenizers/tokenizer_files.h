#pragma once

#include <cstdint>

namespace gainlens::tokenizers {

// The names a checkpoint folder gives to the parts of its tokenizer.
inline constexpr const char* tokenizer_json_file = "tokenizer.json";
inline constexpr const char* sentencepiece_file = "tokenizer.model";
inline constexpr const char* vocabulary_file = "vocab.json";
inline constexpr const char* merges_file = "merges.txt";
inline constexpr const char* tokenizer_config_file = "tokenizer_config.json";

inline constexpr std::uint64_t largest_tokenizer_file = std::uint64_t{256} << 20;  ///< bytes, unpacked

}  // namespace gainlens::tokenizers
