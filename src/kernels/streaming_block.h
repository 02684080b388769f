#pragma once

#include "kernels/attention_inputs.h"
#include "kernels/attention_workspace.h"
#include "kernels/query_blocks.h"
#include "kernels/row_kernels.h"
#include "kernels/tensor_rows.h"

#include <array>
#include <vector>

namespace gainlens::kernels {

/// What all blocks of a call share: read by every worker, written nowhere but in rows of the result that belong to one block.
template <typename Real>
struct StreamingCall {
  const AttentionOptions& options;
  const AttentionShape& shape;
  TensorRows query, value;
  at::Tensor key;         ///< [kv_head, position, head_dim] of dtype Real, last dimension contiguous
  at::Tensor bias;        ///< [head or 1, key] of dtype Real, or undefined
  at::Tensor sink_logit;  ///< [head] float64, or undefined
  const AttentionPlan::Workspace& workspace;
  QueryStatistics& result;
};

/// Sums over the queries of one block and one head, for `column_mean`.
struct ColumnSums {
  std::array<double, first_keys> mass{};  ///< of p_im over queries i >= m
  std::array<std::int64_t, first_keys> queries{};
  std::int64_t queries_without_keys = 0;
};

/// Streams blocks of queries over their keys. One for each worker.
template <typename Real>
class BlockStream {
 public:
  BlockStream(const StreamingCall<Real>& call, WorkerBuffers& buffers) : call_(call), buffers_(buffers) {}

  /// Buffers for blocks of up to `rows` rows.
  static void reserve_buffers(WorkerBuffers& buffers, const AttentionShape& shape, std::int64_t rows);

  /// Writes all results of the block's queries. @param columns  [head of the group]: set, not added to
  void run(const QueryBlock& block, ColumnSums* columns);

 private:
  void load_block(const QueryBlock& block);
  void score_tile(const QueryBlock& block, KeyRange keys);
  void absorb_tile(const QueryBlock& block, KeyRange keys);
  void finish_row(const QueryBlock& block, std::int64_t row, ColumnSums& columns);
  void others_of_row(const QueryBlock& block, std::int64_t row, Real* offset, Real* residual);
  void store_masses(std::int64_t head, std::int64_t query, const Real* first_scores, double log_total, double keys_share,
                    ColumnSums& columns);

  std::int64_t width() const { return padded<Real>(call_.shape.head_dim); }
  std::int64_t head_of(const QueryBlock& block, std::int64_t row) const {
    return block.kv_head * call_.shape.group + row / (block.end - block.begin);
  }
  static std::int64_t query_of(const QueryBlock& block, std::int64_t row) { return block.begin + row % (block.end - block.begin); }
  static Real* row_of(at::Tensor& buffer, std::int64_t row) { return buffer.mutable_data_ptr<Real>() + row * buffer.stride(0); }

  const StreamingCall<Real>& call_;
  WorkerBuffers& buffers_;
  std::int64_t rows_ = 0;
  std::vector<SoftmaxSums> sums_;  // [row]
};

}  // namespace gainlens::kernels
