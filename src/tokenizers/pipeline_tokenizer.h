#pragma once

#include "tokenizers/added_tokens.h"
#include "tokenizers/bpe.h"
#include "tokenizers/normalizer.h"
#include "tokenizers/pre_tokenizer.h"
#include "tokenizers/tokenizer.h"

namespace gainlens::tokenizers {

/// The parts of a tokenizer in the manner of Hugging Face's `tokenizers`.
struct TokenizerParts {
  std::vector<AddedToken> added_tokens;
  std::unique_ptr<Normalizer> normalizer;       ///< may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  ///< may be null: the text is one word
  std::unique_ptr<Bpe> model;
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
