#pragma once

#include "kernels/row_alignment.h"

#include <cstdint>

// Vector code of attention for training, in float32 (Highway, which chooses the instruction set at run time).
//
// Tiles of scores are stored with keys as rows and queries as columns. So a vector holds scores of one key with several
// queries: the softmax needs no sums over the lanes of a vector, and maxima and totals are vectors too. Scores are in
// base 2: s = log2(e) scale q.k, so that p = 2^(s - maximum) / total.
//
// Packed rows have width(dims) numbers, are aligned, and are filled with zeros.

namespace gainlens::kernels {

/// Queries that the backward pass handles at a time.
inline constexpr std::int64_t block_queries = 32;

/// Packed keys and values are filled with rows of zeros, up to a multiple of this number.
inline constexpr std::int64_t key_padding = 16;

/// Numbers in a packed row.
inline std::int64_t packed_width(std::int64_t dims) {
  return padded<float>(dims);
}

/// Some keys of one head, packed.
struct PackedKeys {
  const float* keys;    ///< [count up to key_padding, width]
  const float* values;  ///< [count up to key_padding, width]
  std::int64_t first;   ///< position of the first of them
  std::int64_t count;
  std::int64_t dims;
};

/// A few queries of one head, and the place of their results.
struct QueryPanel {
  const float* transposed;  ///< [dims, panel queries]: q log2(e) scale; zeros after `count` queries
  std::int64_t first;       ///< position of the first query
  std::int64_t count;       ///< at most the number of panel queries
  bool causal;              ///< a query sees keys up to its own position; else all
  float* output;            ///< [panel queries, width]; rows after `count` have no meaning
  float* maxima;            ///< [panel queries]: the largest score of each query
  float* inverse_totals;    ///< [panel queries]: 1 / sum of 2^(s - maximum)
};

/// A block of queries in the backward pass. Everything is zero after `count` queries.
struct QueryBlock {
  const float* transposed_queries;    ///< [dims, block_queries]: q log2(e) scale
  const float* transposed_gradients;  ///< [dims, block_queries]: dO
  const float* queries;               ///< [block_queries, width]: q
  const float* gradients;             ///< [block_queries, width]: dO
  const float* maxima;                ///< [block_queries], as in the forward pass
  const float* inverse_totals;        ///< [block_queries], as in the forward pass
  const float* deltas;                ///< [block_queries]: dO . O
  std::int64_t first;                 ///< position of the first query
  std::int64_t count;
  bool causal;
  float* query_gradients;  ///< [block_queries, width]: dQ / scale of each query is added to it
};

struct TrainingTiles {
  std::int64_t panel_queries;  ///< queries of a panel in the forward pass; divides block_queries

  /// Packs `count` rows, then rows of zeros up to `rows` rows.
  /// @param source  [count, dims]
  /// @param to      [rows, width]
  void (*pack)(const float* source, std::int64_t stride, std::int64_t count, std::int64_t dims, std::int64_t rows,
               float* to);

  /// to = factor packed.
  /// @param packed  [count, width]
  /// @param to      [count, dims]
  void (*unpack)(const float* packed, std::int64_t count, std::int64_t dims, float factor, float* to,
                 std::int64_t stride);

  /// products[j] = left[j] . right[j].
  /// @param left   [count, width], packed
  /// @param right  [count, dims]
  void (*row_products)(const float* left, const float* right, std::int64_t right_stride, std::int64_t count,
                       std::int64_t dims, float* products);

  /// The attention of a panel of queries to all keys (whose `first` is 0).
  void (*attend)(const QueryPanel& panel, const PackedKeys& keys);

  /// Adds the gradients of a block of queries and some keys. With P the weights and dS = P (dO V^T - delta):
  /// dQ / scale += dS K, dK / scale += dS^T Q, dV += P^T dO.
  /// @param key_gradients, value_gradients  [count up to key_padding, width]
  void (*add_gradients)(const QueryBlock& block, const PackedKeys& keys, float* key_gradients, float* value_gradients);
};

/// For the best instruction set of this machine.
const TrainingTiles& training_tiles();

}  // namespace gainlens::kernels
