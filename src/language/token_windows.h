#pragma once

#include "tokenizers/tokenizer.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace gainlens::language {

/// Sequences cut from a stream of tokens. Each input begins with BOS. The target at a position is the next token.
struct Batch {
  at::Tensor inputs;   ///< [sequence, context] int64
  at::Tensor targets;  ///< [sequence, context] int64
};

/// Cuts one sequence of `context` tokens t at every b in `begins`: inputs BOS, t_b, .., t_{b+context-2}; targets t_b,
/// .., t_{b+context-1}.
/// @param begins  start positions; b + context is at most tokens.size()
Batch windows_at(std::span<const tokenizers::TokenId> tokens, tokenizers::TokenId bos, std::int64_t context,
                 std::span<const std::int64_t> begins);

}  // namespace gainlens::language
