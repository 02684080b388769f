#pragma once

#include "data/tokenizer.h"
#include "hooks/hooked_model.h"

#include <span>

namespace gainlens::sweep {

/// A chunk's ids as a model takes them: a batch of one sequence, [1, position] int64, a copy.
hooks::Tokens one_sequence(std::span<const data::TokenId> tokens);

}  // namespace gainlens::sweep
