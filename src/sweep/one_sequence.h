#pragma once

#include "hooks/hooked_model.h"
#include "tokenizers/tokenizer.h"

#include <span>

namespace gainlens::sweep {

/// A chunk's ids as a model takes them: a batch of one sequence, [1, position] int64, a copy.
hooks::Tokens one_sequence(std::span<const tokenizers::TokenId> tokens);

}  // namespace gainlens::sweep
