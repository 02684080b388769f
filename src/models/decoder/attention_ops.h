#pragma once

#include "hooks/hooked_model.h"
#include "kernels/attention_statistics.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace gainlens::models {

/// The output alone, with its gradient: libtorch's fused attention. Where that would need a T x T mask (a window
/// shorter than the chunk, soft cap, sink logits, biases, packed sequences) both passes go over blocks of queries
/// (kernels::attention_with_gradient), in float32 for types narrower than that.
class SdpaAttention : public hooks::AttentionOp {
 public:
  at::Tensor run(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) override;
};

/// The output with statistics of every query, streamed: no T x T tensor. Evaluation only.
class StatisticsAttention : public hooks::AttentionOp {
 public:
  /// Gets the statistics of one layer for one sequence; sequences of a batch come in order.
  using Callback = std::function<void(std::int64_t layer, kernels::QueryStatistics&&)>;

  /// @param backend   which kernel computes them
  /// @param returned  which of them the callback gets
  explicit StatisticsAttention(Callback callback,
                               kernels::AttentionBackend backend = kernels::AttentionBackend::automatic,
                               kernels::ReturnedFields returned = {});
  /// @throws InternalError    an input needs gradients
  /// @throws InvalidArgument  as kernels::attention_statistics
  at::Tensor run(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) override;

 private:
  kernels::AttentionPlan& plan_for(const kernels::AttentionOptions& options);

  Callback callback_;
  kernels::AttentionBackend backend_;
  kernels::ReturnedFields returned_;
  std::vector<kernels::AttentionPlan> plans_;  // one per kind of layer, so that layers of a kind share a workspace
};

/// The textbook form, with all T x T weights in memory: for interventions on `hook_pattern`, and as a reference in
/// tests.
class MaterialisedAttention : public hooks::AttentionOp {
 public:
  at::Tensor run(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) override;
};

/// Attention weights [batch, head, query, key], in the type of the queries; the softmax runs in float32 for types
/// narrower than that. Hidden keys have weight 0, as has a query that sees no key or is padding; with sink logits the
/// weights of a query sum to 1 - p_s.
at::Tensor attention_pattern(const hooks::Qkv& qkv, const kernels::AttentionOptions& options);

/// Weighted values [batch, head, query, head_dim].
/// @param pattern  [batch, head, query, key]
/// @param value    [batch, kv_head, key, head_dim]
at::Tensor apply_pattern(const at::Tensor& pattern, const at::Tensor& value);

}  // namespace gainlens::models
