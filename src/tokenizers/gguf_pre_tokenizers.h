#pragma once

#include "tokenizers/normalizer.h"
#include "tokenizers/pre_tokenizer.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::tokenizers {

/// What a name under `tokenizer.ggml.pre` stands for.
struct GgufPreTokenizer {
  std::unique_ptr<Normalizer> normalizer;  ///< may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  bool ignore_merges = false;            ///< a word that is a token as a whole is not split
  std::optional<bool> adds_bos = false;  ///< used if the file does not say; nothing: then it is not known
};

/// Every name that is known, sorted.
std::vector<std::string> gguf_pre_tokenizer_names();

/// Normaliser and pre-tokenizer as in the tokenizer.json of the models that the name was made for.
/// @param where  names the file in messages
/// @throws InvalidArgument  an unknown name (the message lists the known ones); "default", which is not the pattern of
///     any model
GgufPreTokenizer make_gguf_pre_tokenizer(std::string_view name, std::string_view where);

}  // namespace gainlens::tokenizers
