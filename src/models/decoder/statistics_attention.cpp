#include "models/decoder/attention_ops.h"

#include "core/check.h"
#include "kernels/gradient_tracking.h"
#include "kernels/query_fields.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace gainlens::models {
namespace {

bool same_kind(const kernels::AttentionOptions& a, const kernels::AttentionOptions& b) {
  return a.scale == b.scale && a.causal == b.causal && a.window == b.window && a.first_query == b.first_query &&
         a.soft_cap == b.soft_cap && a.sequences == b.sequences && a.key_bias.is_same(b.key_bias) &&
         a.distance_bias.is_same(b.distance_bias) && a.sink_logit.is_same(b.sink_logit) &&
         a.prior_strength == b.prior_strength && a.prior_variance == b.prior_variance &&
         a.prior_precision == b.prior_precision &&
         a.prior_precision_by_dimension.is_same(b.prior_precision_by_dimension) && a.estimator == b.estimator &&
         a.backend == b.backend && a.returned == b.returned;
}

/// The statistics where their readers compute.
kernels::QueryStatistics on_cpu(kernels::QueryStatistics statistics) {
  if (statistics.n_eff.is_cpu()) return statistics;
  const auto move = [&statistics](at::Tensor kernels::QueryStatistics::*field) {
    if (at::Tensor& tensor = statistics.*field; tensor.defined()) tensor = tensor.cpu();
  };
  for (const kernels::QueryField& field : kernels::query_fields) move(field.tensor);
  for (const kernels::StatisticsTensor& other : kernels::other_tensors) move(other.tensor);
  move(&kernels::QueryStatistics::value_variance);
  return statistics;
}

}  // namespace

StatisticsAttention::StatisticsAttention(Callback callback, kernels::AttentionBackend backend,
                                         kernels::ReturnedFields returned, ChosenEstimator estimator)
    : callback_(std::move(callback)), backend_(backend), returned_(returned), estimator_(estimator) {
  ASSERT(callback_ != nullptr, "statistics attention without a callback");
}

kernels::AttentionPlan& StatisticsAttention::plan_for(const kernels::AttentionOptions& options) {
  const auto found =
      std::find_if(plans_.begin(), plans_.end(), [&](const auto& plan) { return same_kind(plan.options(), options); });
  return found != plans_.end() ? *found : plans_.emplace_back(options);
}

hooks::ObservedAttention StatisticsAttention::observed(std::int64_t layer, const hooks::Qkv& qkv,
                                                       const kernels::AttentionOptions& options,
                                                       const hooks::PrecisionBias* bias) {
  const bool gradient =
      kernels::is_tracked(qkv.query) || kernels::is_tracked(qkv.key) || kernels::is_tracked(qkv.value);
  ASSERT(!gradient, "statistics attention has no gradient; run it under InferenceMode or NoGradGuard");
  std::vector<at::Tensor> outputs, n_effs, residuals;
  inputs_ = &qkv;
  for (std::int64_t sequence = 0; sequence < qkv.query.size(0); ++sequence) {
    kernels::AttentionOptions own =
        bias != nullptr ? options_of_sequence(options, *bias, sequence, qkv.key.size(2)) : options;
    own.backend = backend_;
    own.returned = returned_;
    own.estimator = estimator_;
    own.returned.per_dimension |= bias != nullptr;
    std::optional<kernels::AttentionPlan> passing;  // biases are those of this call: its plan serves no other
    if (bias != nullptr) passing.emplace(own);
    kernels::AttentionPlan& plan = passing ? *passing : plan_for(own);
    kernels::QueryStatistics statistics =
        kernels::attention_statistics(plan, qkv.query[sequence], qkv.key[sequence], qkv.value[sequence]);
    outputs.push_back(statistics.output);
    if (bias != nullptr) {
      n_effs.push_back(statistics.n_eff);
      residuals.push_back(statistics.residual_by_dimension);
    }
    present_ = &plan.options();
    callback_(layer, on_cpu(std::move(statistics)));
  }
  if (bias == nullptr) return {at::stack(outputs), {}, {}};
  return {at::stack(outputs), at::stack(n_effs), at::stack(residuals)};
}

at::Tensor StatisticsAttention::run(std::int64_t layer, const hooks::Qkv& qkv,
                                    const kernels::AttentionOptions& options) {
  return observed(layer, qkv, options, nullptr).output;
}

hooks::ObservedAttention StatisticsAttention::run_with_moments(std::int64_t layer, const hooks::Qkv& qkv,
                                                               const kernels::AttentionOptions& options,
                                                               const hooks::PrecisionBias& bias) {
  return observed(layer, qkv, options, &bias);
}

}  // namespace gainlens::models
