#pragma once

#include "tokenizers/tokenizer.h"

#include <string>

namespace gainlens::tokenizers {

/// The text of tokens that come one by one. The pieces that it gives, put together, are Tokenizer::decode() of all
/// tokens.
class GrowingText {
 public:
  /// @param tokenizer  must exist as long as this object
  explicit GrowingText(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  /// @return what the token adds, in whole characters: one whose last bytes are missing waits for a later token
  std::string add(TokenId id);
  /// @return the bytes that still wait, as decode() writes those of no character
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  std::string waiting_;
};

}  // namespace gainlens::tokenizers
