#pragma once

#include "tokenizers/added_tokens.h"
#include "tokenizers/bpe.h"
#include "tokenizers/normalizer.h"
#include "tokenizers/pre_tokenizer.h"
#include "tokenizers/tokenizer.h"

namespace gainlens::tokenizers {

/// How the tokens of a vocabulary write bytes.
enum class TokenBytes {
  text,           ///< as they are
  byte_level,     ///< as the characters of append_byte_level()
  byte_fallback,  ///< as they are, and single bytes as "<0x0A>"
};

/// The parts of a tokenizer in the manner of Hugging Face's `tokenizers`.
struct TokenizerParts {
  std::vector<AddedToken> added_tokens;
  std::unique_ptr<Normalizer> normalizer;       ///< may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  ///< may be null: the text is one word
  std::unique_ptr<Bpe> model;
  TokenBytes token_bytes = TokenBytes::text;
  std::optional<TokenId> bos;
  bool adds_bos = false;
  std::string bos_doubt;    ///< as Tokenizer::bos_doubt
  std::string description;  ///< without the number of tokens: "byte-level BPE, {} tokens (vocab.json + merges.txt)"
};

/// A tokenizer with these steps: added tokens in the text as given -> normaliser -> added tokens of the normalised text
/// -> words -> byte-pair encoding.
/// @param where  names the file in messages
/// @throws InvalidArgument  an added token is given twice, is empty (also after normalisation), or has the id of
///     another token
std::unique_ptr<Tokenizer> make_pipeline(TokenizerParts parts, std::string where);

}  // namespace gainlens::tokenizers
