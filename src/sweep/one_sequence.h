#pragma once

#include "hooks/hooked_model.h"
#include "tokenizers/tokenizer.h"

#include <span>

namespace gainlens::sweep {

/// Copies a chunk's ids into the form that a model takes: a batch of one sequence, [1, position] int64.
hooks::Tokens one_sequence(std::span<const tokenizers::TokenId> tokens);

}  // namespace gainlens::sweep
