#include "kernels/streaming/query_blocks.h"

#include <algorithm>

namespace gainlens::kernels {
namespace {

/// 120 rows are a whole number of strips of 6 or of 12 rows. The queries, weights and sums of a block should fit into a
/// second-level cache of 512 KiB. More rows would compute more hidden scores along the diagonal. With fewer rows, the
/// packed keys and values would be read more often.
std::int64_t queries_per_block(const AttentionShape& shape) {
  // In float32 a row takes 4 bytes for each dimension of a key, and two sums of 8 bytes for each dimension of a value.
  const std::int64_t rows = shape.key_dim + 4 * shape.value_dim > 640 ? 60 : 120;
  return std::max<std::int64_t>(1, rows / shape.group);
}

}  // namespace

std::vector<QueryBlock> query_blocks(const AttentionOptions& options, const AttentionShape& shape) {
  const std::int64_t step = queries_per_block(shape);
  std::vector<QueryBlock> one_head;
  for (std::int64_t begin = options.first_query; begin < shape.length;) {
    const bool two_pass = options.causal && begin < centre_keys;
    const std::int64_t limit = two_pass ? std::min(centre_keys, shape.length) : shape.length;
    const std::int64_t end = std::min(begin + step, limit);
    one_head.push_back({.kv_head = 0, .begin = begin, .end = end, .two_pass = two_pass});
    begin = end;
  }
  std::reverse(one_head.begin(), one_head.end());  // longest first: causal blocks grow with the position

  std::vector<QueryBlock> blocks;
  for (std::int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
    for (QueryBlock block : one_head) {
      block.kv_head = kv_head;
      blocks.push_back(block);
    }
  }
  return blocks;
}

std::int64_t largest_block_rows(const AttentionShape& shape, const std::vector<QueryBlock>& blocks) {
  std::int64_t rows = 0;
  for (const QueryBlock& block : blocks) rows = std::max(rows, block.queries() * shape.group);
  return rows;
}

std::int64_t max_tiles(const AttentionOptions& options, const AttentionShape& shape,
                       const std::vector<QueryBlock>& blocks) {
  std::int64_t tiles = 0;
  for (const QueryBlock& block : blocks) {
    const KeyRange keys = block_keys(options, shape, block);
    tiles = std::max(tiles, (keys.end - 1) / tile_keys - keys.begin / tile_keys + 1);
  }
  return tiles;
}

KeyRange block_keys(const AttentionOptions& options, const AttentionShape& shape, const QueryBlock& block) {
  return {visible_keys(options, shape.length, block.begin).begin,
          visible_keys(options, shape.length, block.end - 1).end};
}

}  // namespace gainlens::kernels
