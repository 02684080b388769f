// The streaming kernel: packs the keys and values of some kv heads at a time, then streams the blocks of queries of
// these heads over them.

#include "kernels/streaming/attention_streaming.h"

#include "kernels/parallel_tasks.h"
#include "kernels/query_fields.h"
#include "kernels/row_alignment.h"
#include "kernels/streaming/attention_workspace.h"
#include "kernels/streaming/key_sums.h"
#include "kernels/streaming/packed_values.h"
#include "kernels/streaming/query_blocks.h"
#include "kernels/streaming/streaming_block.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

namespace gainlens::kernels {
namespace {

constexpr const char* where = "attention_statistics";

/// Only few kv heads are packed at a time, so that the packed form is still in the cache when it is read. Their number
/// is chosen so that each worker has this many blocks to choose from.
constexpr std::int64_t blocks_per_worker = 32;

std::int64_t kv_heads_at_a_time(const AttentionOptions& options, const AttentionShape& shape) {
  AttentionShape one = shape;
  one.kv_heads = 1;
  one.heads = shape.group;
  const std::int64_t blocks = std::ssize(query_blocks(options, one));
  return std::min(blocks_of(blocks_per_worker * task_workers(), blocks), shape.kv_heads);
}

/// Some heads of a tensor as Real, with a contiguous last dimension. No copy is made if the tensor has this form.
template <typename Real>
at::Tensor heads_of(const at::Tensor& tensor, std::int64_t first, std::int64_t count) {
  const at::Tensor part = tensor.narrow(0, first, count).to(c10::CppTypeToScalarType<Real>::value);
  return part.stride(2) == 1 || part.size(2) == 1 ? part : part.contiguous();
}

/// An option that has a row for each head, narrowed to some heads. An option that all heads share is returned
/// unchanged.
at::Tensor heads_of_rows(const at::Tensor& rows, std::int64_t first, std::int64_t count) {
  return rows.defined() && rows.size(0) > 1 ? rows.narrow(0, first, count) : rows;
}

/// The tensors of the result narrowed to some heads; `output` as Real.
template <typename Real>
QueryStatistics heads_of_result(const QueryStatistics& result, const AttentionShape& shape,
                                std::int64_t first_kv_head) {
  QueryStatistics part = result;
  const std::int64_t first = first_kv_head * shape.group;
  const auto narrow = [&](at::Tensor QueryStatistics::*tensor) {
    if ((result.*tensor).defined()) part.*tensor = (result.*tensor).narrow(0, first, shape.heads);
  };
  for (const QueryField& field : query_fields) narrow(field.tensor);
  for (const StatisticsTensor& other : other_tensors) narrow(other.tensor);
  part.value_variance = result.value_variance.narrow(0, first_kv_head, shape.kv_heads);
  constexpr at::ScalarType type = c10::CppTypeToScalarType<Real>::value;
  if (part.output.defined() && part.output.scalar_type() != type) part.output = at::zeros(part.output.sizes(), type);
  return part;
}

/// Sets `column_mean` of some heads and adds to the number of queries without keys. The sums of the blocks are added in
/// a fixed order.
template <typename Real>
void reduce_columns(const AttentionShape& shape, std::span<const QueryBlock> blocks,
                    std::span<const ColumnSums> columns, QueryStatistics& result) {
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
  if (!result.column_mean.defined()) return;
  Real* mean = result.column_mean.template mutable_data_ptr<Real>();
  for (const ColumnSums& head : heads) {
    for (std::size_t key = 0; key < static_cast<std::size_t>(result.column_mean.size(1)); ++key) {
      *mean++ = static_cast<Real>(head.mass[key] / static_cast<double>(head.queries[key]));
    }
  }
}

/// The tensors of the options, in the types of the kernel.
struct PreparedOptions {
  at::Tensor key_bias, distance_bias, sink_logit, prior_precision;
};

PreparedOptions prepare(const AttentionOptions& options, const AttentionShape& shape, at::ScalarType type) {
  PreparedOptions prepared{.key_bias = bias_rows(options.key_bias, type),
                           .distance_bias = bias_rows(options.distance_bias, type),
                           .prior_precision = precision_rows(options, shape, type)};
  if (prepared.distance_bias.defined()) {
    // For key - query from 1 - length to length - 1, so that a row of a tile reads it in order.
    prepared.distance_bias = at::cat({prepared.distance_bias.flip(1), prepared.distance_bias.slice(1, 1)}, 1);
  }
  if (options.sink_logit.defined()) prepared.sink_logit = options.sink_logit.to(at::kDouble).contiguous();
  return prepared;
}

/// Extrema of the heads processed so far.
struct InputExtrema {
  Extrema query, key, value;
};

/// Processes the kv heads from `first_kv_head` on; `shape` has the number of these and of their query heads.
template <typename Real>
void stream_heads(AttentionPlan::Workspace& workspace, const AttentionOptions& options, const PreparedOptions& prepared,
                  const AttentionShape& shape, std::int64_t first_kv_head, const at::Tensor& query,
                  const at::Tensor& key, const at::Tensor& value, QueryStatistics& result, InputExtrema& extrema) {
  const std::int64_t first_head = first_kv_head * shape.group;
  const PackedExtrema packed = pack_keys_and_values<Real>(heads_of<Real>(key, first_kv_head, shape.kv_heads),
                                                          heads_of<Real>(value, first_kv_head, shape.kv_heads),
                                                          workspace, result.value_variance);
  check_extrema(where, "key", packed.key);
  check_extrema(where, "value", packed.value);

  const at::Tensor queries = heads_of<Real>(query, first_head, shape.heads);
  const at::Tensor key_bias = heads_of_rows(prepared.key_bias, first_head, shape.heads);
  const at::Tensor distance_bias = heads_of_rows(prepared.distance_bias, first_head, shape.heads);
  const at::Tensor sink_logit = heads_of_rows(prepared.sink_logit, first_head, shape.heads);
  const at::Tensor prior_precision = heads_of_rows(prepared.prior_precision, first_head, shape.heads);
  const StreamingCall<Real> call{.options = options,
                                 .shape = shape,
                                 .query = queries,
                                 .key_bias = key_bias,
                                 .distance_bias = distance_bias,
                                 .sink_logit = sink_logit,
                                 .prior_precision = prior_precision,
                                 .workspace = workspace,
                                 .result = result};
  const std::vector<QueryBlock> blocks = query_blocks(options, shape);
  const KeyMeans key_means = options.returned.key_means;
  if (key_means != KeyMeans::none) {
    reserve(workspace.normaliser, {shape.heads, shape.length}, at::kDouble);
    workspace.normaliser.fill_(std::numeric_limits<double>::infinity());
  }
  const std::int64_t rows = largest_block_rows(shape, blocks), tiles = max_tiles(options, shape, blocks);
  workspace.workers.resize(static_cast<std::size_t>(task_workers()));
  std::vector<BlockStream<Real>> streams;
  for (WorkerBuffers& buffers : workspace.workers) {
    BlockStream<Real>::reserve_buffers(buffers, shape, rows, tiles, options.returned);
    streams.emplace_back(call, buffers);
  }
  std::vector<ColumnSums> columns(blocks.size() * static_cast<std::size_t>(shape.group));  // [block, head of the group]
  run_tasks(std::ssize(blocks), [&](std::int64_t worker, std::int64_t task) {
    streams[static_cast<std::size_t>(worker)].run(blocks[static_cast<std::size_t>(task)],
                                                  columns.data() + task * shape.group);
  });

  Extrema seen;
  for (const BlockStream<Real>& stream : streams) seen.add(stream.query_extrema());
  check_extrema(where, "query", seen);
  extrema.query.add(seen);
  extrema.key.add(packed.key);
  extrema.value.add(packed.value);
  reduce_columns<Real>(shape, blocks, columns, result);
  if (key_means == KeyMeans::none) return;
  const at::Tensor own_keys = heads_of<Real>(key, first_kv_head, shape.kv_heads);
  AttentionOptions head_options = options;
  head_options.key_bias = key_bias;
  head_options.distance_bias = heads_of_rows(bias_rows(options.distance_bias, at::kDouble), first_head, shape.heads);
  const at::Tensor counts = queries_of_keys(head_options, shape, at::kCPU);
  const NarrowInputs<Real> narrow{.options = options,
                                  .shape = shape,
                                  .query = queries,
                                  .key = own_keys,
                                  .key_bias = key_bias,
                                  .distance_bias = distance_bias,
                                  .normaliser = workspace.normaliser,
                                  .counts = counts,
                                  .first_mass = result.first_mass};
  const at::Tensor sums = key_means == KeyMeans::all ? sums_of_all_keys(shape, workspace.workers)
                                                     : sums_of_large_keys(narrow, workspace.workers);
  finish_key_means(options.returned, sums, counts, result);
}

template <typename Real>
QueryStatistics stream(AttentionPlan::Workspace& workspace, const AttentionOptions& options,
                       const AttentionShape& shape, const at::Tensor& query, const at::Tensor& key,
                       const at::Tensor& value) {
  constexpr at::ScalarType type = c10::CppTypeToScalarType<Real>::value;
  AttentionOptions without_output = options;
  without_output.returned.output = false;
  QueryStatistics result = allocate_statistics(without_output, shape, type, query);
  if (options.returned.output) {  // every row from the first query on is written below
    result.output = at::empty({shape.heads, shape.length, shape.value_dim}, query.options());
    result.output.narrow(1, 0, options.first_query).zero_();
  }
  const PreparedOptions prepared = prepare(options, shape, type);
  const std::int64_t step = kv_heads_at_a_time(options, shape);
  InputExtrema extrema;
  for (std::int64_t first = 0; first < shape.kv_heads; first += step) {
    AttentionShape part = shape;
    part.kv_heads = std::min(step, shape.kv_heads - first);
    part.heads = part.kv_heads * shape.group;
    QueryStatistics part_result = heads_of_result<Real>(result, part, first);
    stream_heads<Real>(workspace, options, prepared, part, first, query, key, value, part_result, extrema);
    result.queries_without_keys = part_result.queries_without_keys;
    if (result.output.defined() && result.output.scalar_type() != type) {
      result.output.narrow(0, first * shape.group, part.heads).copy_(part_result.output);
    }
  }
  // Checked for all heads together: how many heads are processed at a time depends on the threads, and what is refused
  // must not.
  check_scores(where, type, shape, extrema.query, extrema.key);
  check_spread(where, type, shape, extrema.value);
  return result;
}

}  // namespace

QueryStatistics attention_streaming(AttentionPlan::Workspace& workspace, const AttentionOptions& options,
                                    const AttentionShape& shape, const at::Tensor& query, const at::Tensor& key,
                                    const at::Tensor& value) {
  return query.scalar_type() == at::kDouble ? stream<double>(workspace, options, shape, query, key, value)
                                            : stream<float>(workspace, options, shape, query, key, value);
}

}  // namespace gainlens::kernels
