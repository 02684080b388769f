#include "language/token_windows.h"

#include "core/check.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace gainlens::language {

Batch windows_at(std::span<const tokenizers::TokenId> tokens, tokenizers::TokenId bos, std::int64_t context,
                 std::span<const std::int64_t> begins) {
  const auto sequences = static_cast<std::int64_t>(begins.size());
  Batch batch{at::empty({sequences, context}, at::kLong), at::empty({sequences, context}, at::kLong)};
  std::int64_t* inputs = batch.inputs.mutable_data_ptr<std::int64_t>();
  std::int64_t* targets = batch.targets.mutable_data_ptr<std::int64_t>();
  for (const std::int64_t begin : begins) {
    ASSERT(begin >= 0 && begin + context <= static_cast<std::int64_t>(tokens.size()), "a window at {} of {} tokens",
           begin, tokens.size());
    const auto text = tokens.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(context));
    *inputs = bos;
    std::copy(text.begin(), text.end() - 1, inputs + 1);
    std::copy(text.begin(), text.end(), targets);
    inputs += context;
    targets += context;
  }
  return batch;
}

}  // namespace gainlens::language
