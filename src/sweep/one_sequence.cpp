#include "sweep/one_sequence.h"

#include <ATen/ATen.h>

namespace gainlens::sweep {

hooks::Tokens one_sequence(std::span<const tokenizers::TokenId> tokens) {
  // from_blob takes a mutable pointer; the view is only read from.
  auto* const first = const_cast<tokenizers::TokenId*>(tokens.data());
  return {at::from_blob(first, {1, static_cast<std::int64_t>(tokens.size())}, at::kInt).to(at::kLong)};
}

}  // namespace gainlens::sweep
