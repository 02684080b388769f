// The streaming kernel: validation, dtype, tasks over blocks, and the sums over blocks at the end.

#include "kernels/attention_statistics.h"

#include "kernels/attention_inputs.h"
#include "kernels/attention_workspace.h"
#include "kernels/packed_values.h"
#include "kernels/parallel_tasks.h"
#include "kernels/query_blocks.h"
#include "kernels/streaming_block.h"

#include <ATen/ATen.h>

#include <span>
#include <vector>

namespace gainlens::kernels {
namespace {

/// The keys as Real with contiguous rows that BLAS can step through: the inputs themselves where they already are that.
template <typename Real>
at::Tensor readable_keys(const AttentionShape& shape, const at::Tensor& key, AttentionPlan::Workspace& workspace) {
  const at::ScalarType type = c10::CppTypeToScalarType<Real>::value;
  if (key.scalar_type() == type && key.stride(2) == 1 && key.stride(1) >= shape.head_dim) return key;
  reserve(workspace.keys, key.sizes(), type);
  return workspace.keys.copy_(key);
}

/// `column_mean` and the count of queries without keys: sums of blocks in their fixed order.
template <typename Real>
void reduce_columns(const AttentionShape& shape, std::span<const QueryBlock> blocks, std::span<const ColumnSums> columns,
                    QueryStatistics& result) {
  std::vector<ColumnSums> heads(static_cast<std::size_t>(shape.heads));
  const auto group = static_cast<std::size_t>(shape.group);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::size_t head = static_cast<std::size_t>(blocks[i / group].kv_head) * group + i % group;
    for (std::size_t key = 0; key < first_keys; ++key) {
      heads[head].mass[key] += columns[i].mass[key];
      heads[head].queries[key] += columns[i].queries[key];
    }
    result.queries_without_keys += columns[i].queries_without_keys;
  }
  Real* mean = result.column_mean.mutable_data_ptr<Real>();
  for (const ColumnSums& head : heads) {
    for (std::size_t key = 0; key < first_keys; ++key) *mean++ = static_cast<Real>(head.mass[key] / static_cast<double>(head.queries[key]));
  }
}

template <typename Real>
QueryStatistics stream(AttentionPlan& plan, const AttentionShape& shape, const at::Tensor& query, const at::Tensor& key,
                       const at::Tensor& value) {
  const at::ScalarType type = c10::CppTypeToScalarType<Real>::value;
  const AttentionOptions& options = plan.options();
  AttentionPlan::Workspace& workspace = plan.workspace();
  QueryStatistics result = allocate_statistics(options, shape, type, query);
  pack_values<Real>(shape, value, workspace, result.value_variance);

  const StreamingCall<Real> call{
      .options = options,
      .shape = shape,
      .query = TensorRows(query),
      .value = TensorRows(value),
      .key = readable_keys<Real>(shape, key, workspace),
      .bias = bias_rows(options.key_bias, type),
      .sink_logit = options.sink_logit.defined() ? options.sink_logit.to(at::kDouble).contiguous() : at::Tensor(),
      .workspace = workspace,
      .result = result};
  const std::vector<QueryBlock> blocks = query_blocks(options, shape);
  const std::int64_t rows = largest_block_rows(shape, blocks);
  workspace.workers.resize(static_cast<std::size_t>(task_workers()));
  std::vector<BlockStream<Real>> streams;
  for (WorkerBuffers& buffers : workspace.workers) {
    BlockStream<Real>::reserve_buffers(buffers, shape, rows);
    streams.emplace_back(call, buffers);
  }
  std::vector<ColumnSums> columns(blocks.size() * static_cast<std::size_t>(shape.group));  // [block, head of the group]
  run_tasks(static_cast<std::int64_t>(blocks.size()), [&](std::int64_t worker, std::int64_t task) {
    streams[static_cast<std::size_t>(worker)].run(blocks[static_cast<std::size_t>(task)], columns.data() + task * shape.group);
  });
  reduce_columns<Real>(shape, blocks, columns, result);
  return result;
}

}  // namespace

AttentionPlan::AttentionPlan(AttentionOptions options) : options_(std::move(options)), workspace_(std::make_unique<Workspace>()) {}
AttentionPlan::~AttentionPlan() = default;
AttentionPlan::AttentionPlan(AttentionPlan&&) noexcept = default;
AttentionPlan& AttentionPlan::operator=(AttentionPlan&&) noexcept = default;

QueryStatistics attention_statistics(AttentionPlan& plan, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  constexpr const char* where = "attention_statistics";
  const AttentionShape shape = checked_shape(where, plan.options(), query, key, value);
  const at::ScalarType compute_type = query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  check_magnitudes(where, compute_type, shape, query, key, value);
  return compute_type == at::kDouble ? stream<double>(plan, shape, query, key, value) : stream<float>(plan, shape, query, key, value);
}

}  // namespace gainlens::kernels
