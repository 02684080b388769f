#pragma once

#include "kernels/attention_inputs.h"

#include <cstdint>
#include <vector>

namespace gainlens::kernels {

/// Keys in one tile of scores. Tiles begin at multiples of it, so that a query's sums are formed alike whatever the
/// block it is in.
inline constexpr std::int64_t tile_keys = 256;

/// Consecutive queries of all heads of one kv head: they share its keys and values. One task of the streaming kernel.
struct QueryBlock {
  std::int64_t kv_head;
  std::int64_t begin;  ///< first query
  std::int64_t end;
  bool two_pass;  ///< sees at most centre_keys keys, some perhaps fewer: S by the two-pass form

  std::int64_t queries() const { return end - begin; }
};

/// The blocks of a call: kv head by kv head, within each the heaviest first. They depend on shapes and options only,
/// never on content.
std::vector<QueryBlock> query_blocks(const AttentionOptions& options, const AttentionShape& shape);

/// Rows (query x head of the group) of the largest block.
std::int64_t largest_block_rows(const AttentionShape& shape, const std::vector<QueryBlock>& blocks);

/// The keys seen by any query of the block.
KeyRange block_keys(const AttentionOptions& options, const AttentionShape& shape, const QueryBlock& block);

}  // namespace gainlens::kernels
