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
  const float* values;  ///< [count up to key_padding, width(value_dims)]
  std::int64_t first;   ///< position of the first of them
  std::int64_t count;
  std::int64_t dims;
  std::int64_t value_dims;
  /// [count up to key_padding], finite: log2(e) times what is added to the scores of each key. Null: the scores have no
  /// biases, and the gradients of the moments are 0.
  const float* biases = nullptr;
  float distance_slope = 0;  ///< log2(e) times what is added for each place between query and key; needs `biases`
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

/// Where attend_with_moments() puts the moments of a panel; rows after the panel's `count` have no meaning.
struct PanelMoments {
  float* scores;    ///< [keys up to key_padding, panel queries]: for its own use
  float* n_eff;     ///< [panel queries]: 1 / sum p^2, at least 1
  float* residual;  ///< [panel queries, width]: sum p (v - e)^2 of each dimension, e the output
};

/// A block of queries in the backward pass. Everything is zero after `count` queries.
struct QueryBlock {
  const float* transposed_queries;    ///< [dims, block_queries]: q log2(e) scale
  const float* transposed_gradients;  ///< [value_dims, block_queries]: dO
  const float* queries;               ///< [block_queries, width]: q
  const float* gradients;             ///< [block_queries, width(value_dims)]: dO
  const float* maxima;                ///< [block_queries], as in the forward pass
  const float* inverse_totals;        ///< [block_queries], as in the forward pass
  const float* deltas;                ///< [block_queries]: dO . O
  std::int64_t first;                 ///< position of the first query
  std::int64_t count;
  bool causal;
  float* query_gradients;  ///< [block_queries, width]: dQ / scale of each query is added to it
  /// [block_queries]: twice the gradient of sum p^2. Read if the keys have biases.
  const float* square_gradients = nullptr;
};

/// Where the gradients of some keys are added.
struct KeyGradients {
  float* keys;                       ///< [count up to key_padding, width]
  float* values;                     ///< [count up to key_padding, width(value_dims)]
  float* biases = nullptr;           ///< [count up to key_padding]; needed if the keys have biases
  double* distance_slope = nullptr;  ///< one number; the same
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

  /// The same with the moments. It keeps the scores of the panel, computes e, and then sums the squares of offsets from
  /// e: S does not cancel. The keys have biases.
  void (*attend_with_moments)(const QueryPanel& panel, const PackedKeys& keys, const PanelMoments& moments);

  /// Adds the gradients of a block of queries and some keys. With P the weights and dS = P (dO V^T - delta): dQ / scale
  /// += dS K, dK / scale += dS^T Q, dV += P^T dO. If the keys have biases, dS = P (dO V^T + square_gradients P -
  /// delta), the gradient of the bias of a key is the sum of its dS, and that of the slope the sum of dS times the
  /// distances.
  void (*add_gradients)(const QueryBlock& block, const PackedKeys& keys, const KeyGradients& gradients);
};

/// The table for the best instruction set of this machine.
const TrainingTiles& training_tiles();

}  // namespace gainlens::kernels
