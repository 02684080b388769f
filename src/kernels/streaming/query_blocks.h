#pragma once

#include "kernels/attention_inputs.h"

#include <cstdint>
#include <vector>

namespace gainlens::kernels {

/// Consecutive queries of all query heads of one kv head. They share its keys and values. A block is one task of the
/// streaming kernel.
struct QueryBlock {
  std::int64_t kv_head;
  std::int64_t begin;  ///< first query
  std::int64_t end;
  bool two_pass;  ///< each query sees at most centre_keys keys; S is computed in two passes

  std::int64_t queries() const { return end - begin; }
};

/// The blocks of a call, kv head by kv head; within a kv head the longest blocks come first. They depend only on shapes
/// and options, never on content.
std::vector<QueryBlock> query_blocks(const AttentionOptions& options, const AttentionShape& shape);

/// Number of rows (query x head of the group) of the largest block.
std::int64_t largest_block_rows(const AttentionShape& shape, const std::vector<QueryBlock>& blocks);

/// The most tiles of keys that a block streams over.
std::int64_t max_tiles(const AttentionOptions& options, const AttentionShape& shape,
                       const std::vector<QueryBlock>& blocks);

/// The keys seen by any query of the block.
KeyRange block_keys(const AttentionOptions& options, const AttentionShape& shape, const QueryBlock& block);

}  // namespace gainlens::kernels
