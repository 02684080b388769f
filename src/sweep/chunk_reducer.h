#pragma once

#include "hooks/hooked_model.h"
#include "kernels/attention_statistics.h"
#include "runfile/shard.h"
#include "sweep/sink_bound.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace gainlens::sweep {

/// Reduces the per-query statistics of one chunk, layer by layer, to what a shard stores: means and variances over the
/// windows of docs/method.md ("Sweep protocol"), means over 64 bins, norms of the values, and the sink lemma. Computes
/// in double for every compute dtype. Keeps per-query numbers only if asked to.
class ChunkReducer {
 public:
  /// @param layers  original indices of the layers that will be added, in order
  /// @param length  tokens in the chunk
  ChunkReducer(std::vector<std::int64_t> layers, const hooks::AttentionLayout& layout, std::int64_t length,
               bool per_query);

  /// @param layer       original index
  /// @param statistics  fields [head, query]
  /// @param value       [kv_head, position, head_dim] of the layer's own KV heads
  void add(std::int64_t layer, const kernels::QueryStatistics& statistics, const at::Tensor& value);

  /// Stores the mean over head_dim of a gate with one entry per dimension.
  /// @param gate  sigmoid of the gate scores, [position, head] or [position, head, head_dim]
  void add_gate(std::int64_t layer, const at::Tensor& gate);

  /// Stores n_eff and K of the keys that are no sinks, [head, query] each.
  void add_without_sinks(std::int64_t layer, const at::Tensor& n_eff, const at::Tensor& kalman_gain);

  void add_nll(double mean_nll);

  /// Number of queries that saw no key, summed over layers and heads. They are left out of every mean.
  std::int64_t queries_without_keys() const { return queries_without_keys_; }

  /// Number of queries that saw a key and whose lambda_obs is NaN, over all positions. The estimators without a prior
  /// have such queries.
  std::int64_t queries_undefined() const { return queries_undefined_; }

  /// @throws InternalError  a layer was not added
  runfile::ShardResult finish() &&;

 private:
  void add_scalar(const std::string& name, std::size_t row, const at::Tensor& by_query);
  void add_by_key(const std::string& name, std::size_t row, const at::Tensor& by_query);
  /// Adds the norms and the variance of the values, and the sink lemma, which needs these norms.
  void add_values(std::size_t row, const kernels::QueryStatistics& statistics, const at::Tensor& value);
  void add_sink_bound(std::size_t row, std::int64_t head, const SinkRows& queries, double first_norm, double min_norm);
  std::size_t row_of(std::int64_t layer) const;
  double* cell(std::map<std::string, runfile::Array>& group, const std::string& name, std::size_t row,
               std::int64_t heads, std::vector<std::int64_t> tail);

  std::vector<std::int64_t> layers_;
  hooks::AttentionLayout layout_;
  std::int64_t length_;
  bool per_query_;
  bool has_sink_logits_;  ///< some of the layers
  std::vector<bool> added_;
  std::int64_t queries_without_keys_ = 0;
  std::int64_t queries_undefined_ = 0;
  runfile::ShardResult result_;
};

}  // namespace gainlens::sweep
