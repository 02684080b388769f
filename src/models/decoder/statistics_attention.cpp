#include "models/decoder/attention_ops.h"

#include "core/check.h"
#include "kernels/gradient_tracking.h"

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
         a.prior_precision_by_dimension.is_same(b.prior_precision_by_dimension) && a.backend == b.backend &&
         a.returned == b.returned;
}

}  // namespace

StatisticsAttention::StatisticsAttention(Callback callback, kernels::AttentionBackend backend,
                                         kernels::ReturnedFields returned)
    : callback_(std::move(callback)), backend_(backend), returned_(returned) {
  ASSERT(callback_ != nullptr, "statistics attention without a callback");
}

kernels::AttentionPlan& StatisticsAttention::plan_for(const kernels::AttentionOptions& options) {
  const auto found =
      std::find_if(plans_.begin(), plans_.end(), [&](const auto& plan) { return same_kind(plan.options(), options); });
  return found != plans_.end() ? *found : plans_.emplace_back(options);
}

at::Tensor StatisticsAttention::run(std::int64_t layer, const hooks::Qkv& qkv,
                                    const kernels::AttentionOptions& options) {
  const bool gradient =
      kernels::is_tracked(qkv.query) || kernels::is_tracked(qkv.key) || kernels::is_tracked(qkv.value);
  ASSERT(!gradient, "statistics attention has no gradient; run it under InferenceMode or NoGradGuard");
  kernels::AttentionOptions own = options;
  own.backend = backend_;
  own.returned = returned_;
  kernels::AttentionPlan& plan = plan_for(own);
  std::vector<at::Tensor> outputs;
  for (std::int64_t sequence = 0; sequence < qkv.query.size(0); ++sequence) {
    kernels::QueryStatistics statistics =
        kernels::attention_statistics(plan, qkv.query[sequence], qkv.key[sequence], qkv.value[sequence]);
    outputs.push_back(statistics.output);
    callback_(layer, std::move(statistics));
  }
  return at::stack(outputs);
}

}  // namespace gainlens::models
