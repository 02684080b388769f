#pragma once

#include "kernels/attention_inputs.h"
#include "kernels/query_fields.h"
#include "kernels/streaming/attention_workspace.h"
#include "kernels/streaming/panel_products.h"
#include "kernels/streaming/query_blocks.h"
#include "kernels/streaming/row_kernels.h"
#include "kernels/streaming/top_scores.h"

#include <array>
#include <vector>

namespace gainlens::kernels {

/// What all blocks of a call share. Every worker reads it. A worker writes only to the rows of `result` that belong to
/// its block.
template <typename Real>
struct StreamingCall {
  const AttentionOptions& options;
  const AttentionShape& shape;  ///< of the kv heads that are processed and their query heads
  const at::Tensor& query;      ///< [head, position, key_dim] of dtype Real, last dimension contiguous
  const at::Tensor& key_bias;   ///< [head or 1, key] of dtype Real, contiguous, or undefined
  /// [head or 1, 2 length - 1] of dtype Real, for key - query from 1 - length to length - 1; or undefined
  const at::Tensor& distance_bias;
  const at::Tensor& sink_logit;       ///< [head] float64, contiguous, or undefined
  const at::Tensor& prior_precision;  ///< [head, query, value_dim] of dtype Real, or undefined
  const AttentionPlan::Workspace& workspace;
  QueryStatistics& result;  ///< of those heads; `output` of dtype Real
};

/// Sums over the queries of one block and one head, for `column_mean`.
struct ColumnSums {
  std::array<double, first_keys> mass{};  ///< of p_im over queries i >= m
  std::array<std::int64_t, first_keys> queries{};
  std::int64_t queries_without_keys = 0;
};

/// Streams blocks of queries over their keys. Each worker has one.
template <typename Real>
class BlockStream {
 public:
  BlockStream(const StreamingCall<Real>& call, WorkerBuffers& buffers);

  /// Buffers for blocks of up to `rows` rows and `tiles` tiles of keys.
  static void reserve_buffers(WorkerBuffers& buffers, const AttentionShape& shape, std::int64_t rows,
                              std::int64_t tiles, const ReturnedFields& returned);

  /// Writes all results of the block's queries.
  /// @param columns  [head of the group]; the sums are added to them
  void run(const QueryBlock& block, ColumnSums* columns);

  /// Extrema of all queries so far.
  const Extrema& query_extrema() const { return query_extrema_; }

 private:
  void load_block(const QueryBlock& block);
  void score(const QueryBlock& block, KeyRange keys);
  void absorb(const QueryBlock& block, KeyRange keys);
  void bound_keys(const QueryBlock& block, KeyRange keys);
  void add_kept_weights(const QueryBlock& block, KeyRange all);
  void add_first_key(const QueryBlock& block);
  DimensionRows<Real> dimensions_of_row(const QueryBlock& block, std::int64_t row);
  void finish_row(const QueryBlock& block, std::int64_t row, ColumnSums& columns);
  /// Calls sum(head, first query, last query + 1, part) for each head and each part of the text in the block.
  template <typename Sum>
  void for_parts(const QueryBlock& block, const Sum& sum) const;
  void store_masses(std::int64_t head, std::int64_t query, const Real* first_scores, double log_total,
                    double keys_share, ColumnSums& columns);
  void store_top_keys(std::int64_t row, std::int64_t index, double log_total, double keys_share);
  const Real* prior_precision(std::int64_t head, std::int64_t query);
  TopScores<Real> top_scores(std::int64_t row) const { return {top_scores_.row(row), top_keys_.row(row), top_count_}; }

  // Rows are [query][head of the group], so that the rows of a strip see nearly the same keys.
  std::int64_t head_of(const QueryBlock& block, std::int64_t row) const {
    return block.kv_head * call_.shape.group + row % call_.shape.group;
  }
  std::int64_t query_of(const QueryBlock& block, std::int64_t row) const {
    return block.begin + row / call_.shape.group;
  }
  /// The keys of the tile that the row sees, counted from the first key of the tile; empty if none.
  KeyRange visible_in_tile(const QueryBlock& block, std::int64_t row, KeyRange keys) const {
    const KeyRange visible = visible_keys(call_.options, call_.shape.length, query_of(block, row));
    return {std::max<std::int64_t>(visible.begin - keys.begin, 0), std::min(visible.end, keys.end) - keys.begin};
  }

  struct Shared {  // of the workspace
    Rows<const Real> keys, values, centre, unit, early_values, first_value, first_offset, inverse_variance, size;
  };
  struct Results {
    std::array<Real*, query_fields.size()> scalars;  // null: the field is not wanted
    Rows<Real> output, first_mass, sink_logit_mass, first_weight, residual, precision, top_weight;
    Rows<std::int64_t> top_key;
  };
  /// The rows [width] of `dimensions_`, for one query.
  enum DimensionRow {
    offset_row,
    residual_others_row,
    zero_row,
    estimate_row,
    residual_row,
    precision_row,
    prior_precision_row,
    dimension_rows
  };

  const StreamingCall<Real>& call_;
  const Shared shared_;
  const Results results_;
  // Rows of the worker's buffers and of the biases.
  const Rows<Real> queries_, scores_, first_scores_, dimensions_, top_scores_;
  const Rows<std::int64_t> top_keys_;
  const Rows<double> accumulators_;
  const Rows<const Real> key_bias_, distance_bias_;
  const PanelKernels<Real>& panel_kernels_;
  const RowKernels<Real>& row_kernels_;
  const std::int64_t width_;  // value_dim in whole panels
  const Summary summary_;
  const KeyMeans key_means_;
  const std::int64_t top_count_;
  const WorkerBuffers& buffers_;
  std::int64_t rows_ = 0;
  Rows<Real> tile_;                  // of scores_: the rows of the present tile
  std::vector<double> tile_maxima_;  // [tile, row] what the kept weights of a tile are relative to
  std::vector<SoftmaxSums> sums_;    // [row]
  std::vector<StripRange> strips_;   // [strip] keys that its rows see, counted from the first key of the tile
  std::vector<bool> begun_;          // [strip] whether its sums have been set
  Extrema query_extrema_;
};

}  // namespace gainlens::kernels
