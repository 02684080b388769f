// Entry point: checks the inputs, chooses the implementation and runs it on one sequence at a time.

#include "kernels/attention_statistics.h"

#include "core/check.h"
#include "kernels/attention_inputs.h"
#include "kernels/attention_sequences.h"
#include "kernels/composed/attention_composed.h"
#include "kernels/composed/composed_keys.h"
#include "kernels/cuda/attention_fused.h"
#include "kernels/streaming/attention_streaming.h"
#include "kernels/streaming/attention_workspace.h"

#include <utility>

namespace gainlens::kernels {
namespace {

constexpr const char* where = "attention_statistics";

}  // namespace

AttentionBackend chosen_backend(AttentionBackend wish, const at::Device& device, const ChosenEstimator& estimator) {
  const bool reml = estimator.name == Estimator::reml;
  if (wish == AttentionBackend::automatic)
    return device.is_cpu() && reml ? AttentionBackend::streaming : AttentionBackend::composed;
  CHECK(wish != AttentionBackend::streaming || device.is_cpu(),
        "{}: the streaming backend computes on the CPU and the inputs are on {}; use composed", where, device.str());
  CHECK(wish != AttentionBackend::fused_cuda || device.is_cuda(),
        "{}: the fused CUDA backend needs inputs on a CUDA device, not {}; use streaming or composed", where,
        device.str());
  CHECK(wish == AttentionBackend::composed || reml, "{}: the estimator is {}, which the composed backend alone knows",
        where, name_of(estimator.name));
  return wish;
}

AttentionPlan::AttentionPlan(AttentionOptions options)
    : options_(std::move(options)), workspace_(std::make_unique<Workspace>()) {}
AttentionPlan::~AttentionPlan() = default;
AttentionPlan::AttentionPlan(AttentionPlan&&) noexcept = default;
AttentionPlan& AttentionPlan::operator=(AttentionPlan&&) noexcept = default;

QueryStatistics attention_statistics(AttentionPlan& plan, const at::Tensor& query, const at::Tensor& key,
                                     const at::Tensor& value) {
  const AttentionShape whole = checked_shape(where, plan.options(), query, key, value);
  switch (chosen_backend(plan.options().backend, query.device(), plan.options().estimator)) {
    case AttentionBackend::composed:
      check_magnitudes(where, query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat, whole, query, key, value);
      return over_sequences(plan.options(), query, key, value, with_top_keys(with_key_means(attention_composed)));
    case AttentionBackend::fused_cuda:
      check_magnitudes(where, at::kFloat, whole, query, key, value);
      return over_sequences(plan.options(), query, key, value, with_top_keys(with_key_means(attention_fused_cuda)));
    default:  // checks magnitudes while it packs, which saves a pass over the inputs
      return over_sequences(plan.options(), query, key, value,
                            [&plan](const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& q,
                                    const at::Tensor& k, const at::Tensor& v) {
                              return attention_streaming(plan.workspace(), options, shape, q, k, v);
                            });
  }
}

}  // namespace gainlens::kernels
