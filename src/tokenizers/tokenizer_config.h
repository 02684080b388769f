#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace gainlens::tokenizers {

/// What tokenizer_config.json of a checkpoint says about the tokens.
struct TokenizerConfig {
  std::optional<bool> add_bos_token;
  std::optional<std::string> bos_token;        ///< its text
  std::optional<std::string> tokenizer_class;  ///< "LlamaTokenizer"
  bool add_prefix_space = false;

  /// add_bos_token, or where it is absent true for the classes of which it is the default: Llama's and Gemma's
  /// tokenizers. Else nothing.
  std::optional<bool> adds_bos() const;
};

/// Reads folder/tokenizer_config.json; all defaults where there is none.
/// @throws InvalidArgument  broken, or a field of the wrong type
TokenizerConfig read_tokenizer_config(const std::filesystem::path& folder);

}  // namespace gainlens::tokenizers
