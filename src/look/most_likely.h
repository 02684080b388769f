#pragma once

#include "core/prompt_look.h"
#include "tokenizers/tokenizer.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace gainlens::look {

/// The most likely tokens, the first of equal ones first.
/// @param logits     [vocabulary], finite
/// @param count      of tokens; all if the vocabulary has fewer
/// @param tokenizer  for their texts; may be null
std::vector<NextToken> most_likely(const at::Tensor& logits, std::int64_t count,
                                   const tokenizers::Tokenizer* tokenizer);

}  // namespace gainlens::look
