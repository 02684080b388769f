#pragma once

#include "hooks/hooked_model.h"
#include "kernels/attention_statistics.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace gainlens::models {

/// The output alone, with its gradient. In float32 on the CPU: kernels::training_attention(). Elsewhere: libtorch's
/// scaled_dot_product_attention(). Neither serves a window shorter than the chunk, a soft cap, sink logits, biases or
/// packed sequences without a T x T mask. Then both passes go over blocks of queries
/// (kernels::attention_with_gradient), in float32 for narrower types.
///
/// With moments and without a gradient: kernels::attention_statistics. With a gradient: the tiles of
/// kernels::training_attention_moments() in float32 on the CPU, else blocks of queries. There a later token may change
/// the last digits of earlier positions (in the tiles of their gradients), because values are centred by their mean.
class UsualAttention : public hooks::AttentionOp {
 public:
  at::Tensor run(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) override;
  hooks::ObservedAttention run_with_moments(std::int64_t layer, const hooks::Qkv& qkv,
                                            const kernels::AttentionOptions& options,
                                            const hooks::PrecisionBias& bias) override;
};

/// The output with statistics of every query, streamed: no T x T tensor exists. Evaluation only.
class StatisticsAttention : public hooks::AttentionOp {
 public:
  /// Called with the statistics of one layer for one sequence, on the CPU. The sequences of a batch come in order.
  using Callback = std::function<void(std::int64_t layer, kernels::QueryStatistics&&)>;

  /// @param backend   which kernel computes them
  /// @param returned  which fields the callback gets
  /// @param estimator of lambda_obs in these fields; a filter of the model keeps its own
  explicit StatisticsAttention(Callback callback,
                               kernels::AttentionBackend backend = kernels::AttentionBackend::automatic,
                               kernels::ReturnedFields returned = {}, ChosenEstimator estimator = {});
  /// @throws InternalError    an input needs gradients
  /// @throws InvalidArgument  as kernels::attention_statistics
  at::Tensor run(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) override;
  hooks::ObservedAttention run_with_moments(std::int64_t layer, const hooks::Qkv& qkv,
                                            const kernels::AttentionOptions& options,
                                            const hooks::PrecisionBias& bias) override;

  /// The options of the statistics that the callback gets, while it runs.
  const kernels::AttentionOptions& options() const { return *present_; }
  /// The inputs of the layer that runs, while the callback runs: of the whole batch, where the model computes.
  const hooks::Qkv& inputs() const { return *inputs_; }

 private:
  kernels::AttentionPlan& plan_for(const kernels::AttentionOptions& options);
  /// @param bias  null: the output alone, without biases of a filter
  hooks::ObservedAttention observed(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options,
                                    const hooks::PrecisionBias* bias);

  Callback callback_;
  kernels::AttentionBackend backend_;
  kernels::ReturnedFields returned_;
  ChosenEstimator estimator_;
  const kernels::AttentionOptions* present_ = nullptr;
  const hooks::Qkv* inputs_ = nullptr;
  std::vector<kernels::AttentionPlan> plans_;  // one for each kind of layer: layers of the same kind share a workspace
};

/// Attention weights [batch, head, query, key] in the type of the queries. The softmax runs in float32 for narrower
/// types. A hidden key has weight 0. All weights of a query are 0 if it sees no key or is padding. With sink logits the
/// weights of a query sum to 1 - p_s. There may be fewer queries than keys: they are those of the last positions
/// (without sequences).
at::Tensor attention_pattern(const hooks::Qkv& qkv, const kernels::AttentionOptions& options);

/// The same with the biases of a filter.
at::Tensor attention_pattern(const hooks::Qkv& qkv, const kernels::AttentionOptions& options,
                             const hooks::PrecisionBias& bias);

/// The options for one sequence of a batch, with the biases of a filter.
/// @param positions  of the sequence
kernels::AttentionOptions options_of_sequence(const kernels::AttentionOptions& options,
                                              const hooks::PrecisionBias& bias, std::int64_t sequence,
                                              std::int64_t positions);

/// Weighted values [batch, head, query, head_dim].
/// @param pattern  [batch, head, query, key]
/// @param value    [batch, kv_head, key, head_dim]
at::Tensor apply_pattern(const at::Tensor& pattern, const at::Tensor& value);

/// The weighted values with the moments of the weights; these are NaN for a query whose weights are all 0.
/// @param pattern  [batch, head, query, key]; the moments are those of the weights divided by their sum
/// @param value    [batch, kv_head, key, head_dim]
hooks::ObservedAttention observed_by_pattern(const at::Tensor& pattern, const at::Tensor& value);

}  // namespace gainlens::models
