// The entry: checks, one sequence at a time, the choice of the implementation.

#include "kernels/attention_statistics.h"

#include "kernels/attention_inputs.h"
#include "kernels/attention_sequences.h"
#include "kernels/attention_streaming.h"
#include "kernels/attention_workspace.h"

#include <utility>

namespace gainlens::kernels {

AttentionPlan::AttentionPlan(AttentionOptions options) : options_(std::move(options)), workspace_(std::make_unique<Workspace>()) {}
AttentionPlan::~AttentionPlan() = default;
AttentionPlan::AttentionPlan(AttentionPlan&&) noexcept = default;
AttentionPlan& AttentionPlan::operator=(AttentionPlan&&) noexcept = default;

QueryStatistics attention_statistics(AttentionPlan& plan, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  constexpr const char* where = "attention_statistics";
  checked_shape(where, plan.options(), query, key, value);
  return over_sequences(plan.options(), query, key, value,
                        [&plan](const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& q, const at::Tensor& k,
                                const at::Tensor& v) { return attention_streaming(plan.workspace(), options, shape, q, k, v); });
}

}  // namespace gainlens::kernels
