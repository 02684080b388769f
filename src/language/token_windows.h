#pragma once

#include "tokenizers/tokenizer.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace gainlens::language {

/// Sequences cut from a stream of tokens, each beginning with BOS: inputs [sequence, context] and, one place ahead,
/// their targets.
struct Batch {
  at::Tensor inputs;   ///< int64
  at::Tensor targets;  ///< int64
};

/// Sequence of `context` tokens whose text starts at `begin`: inputs BOS, t_b, .., t_{b+context-2}; targets t_b, ..,
/// t_{b+context-1}.
/// @param begins  each + context at most tokens.size()
Batch windows_at(std::span<const tokenizers::TokenId> tokens, tokenizers::TokenId bos, std::int64_t context,
                 std::span<const std::int64_t> begins);

}  // namespace gainlens::language
