#pragma once

#include "hooks/hooked_model.h"
#include "tokenizers/tokenizer.h"

#include <ATen/ops/from_blob.h>

#include <cstdint>
#include <span>

namespace gainlens::sweep {

/// Copies a chunk's ids into the form that a model takes: a batch of one sequence, [1, position] int64.
inline hooks::Tokens one_sequence(std::span<const tokenizers::TokenId> tokens) {
  // from_blob takes a mutable pointer; the view is only read from.
  auto* const first = const_cast<tokenizers::TokenId*>(tokens.data());
  return {at::from_blob(first, {1, static_cast<std::int64_t>(tokens.size())}, at::kInt).to(at::kLong)};
}

}  // namespace gainlens::sweep
