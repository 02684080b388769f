#include "kernels/gradient/training_attention.h"

#include "core/check.h"
#include "kernels/gradient/training_tiles.h"
#include "kernels/gradient_tracking.h"
#include "kernels/linear/tile_kernels.h"
#include "kernels/parallel_tasks.h"
#include "kernels/row_alignment.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>
#include <numbers>
#include <vector>

namespace gainlens::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t largest_head_dim = 256;

/// A pass is divided into at least this many tasks if the shape allows for it.
constexpr std::int64_t enough_tasks = 16;

/// Queries that a task of the forward pass handles at most, for each head of a kv head.
constexpr std::int64_t max_task_queries = 256;

/// The backward pass divides the keys into parts if there are few kv heads. Each part holds its own sums of dQ until
/// the end. A rule of the shape alone: the bits must not depend on the number of threads.
constexpr std::int64_t max_parts = 8, fewest_part_keys = 256;

struct Shape {
  std::int64_t batch, heads, kv_heads, queries, keys, dims;

  Shape(const at::Tensor& query, const at::Tensor& key)
      : batch(query.size(0)),
        heads(query.size(1)),
        kv_heads(key.size(1)),
        queries(query.size(2)),
        keys(key.size(2)),
        dims(query.size(3)) {}

  std::int64_t group() const { return heads / kv_heads; }
  std::int64_t width() const { return packed_width(dims); }
};

/// The rows of a tensor [batch, head, position, head_dim] with contiguous rows.
template <typename Real>
struct HeadRows {
  Real* data;
  std::int64_t batch_stride, head_stride, stride;

  Real* row(std::int64_t batch, std::int64_t head, std::int64_t position) const {
    return data + batch * batch_stride + head * head_stride + position * stride;
  }
};

HeadRows<const float> rows_to_read(const at::Tensor& x) {
  return {x.const_data_ptr<float>(), x.stride(0), x.stride(1), x.stride(2)};
}
HeadRows<float> rows_to_write(const at::Tensor& x) {
  return {x.mutable_data_ptr<float>(), x.stride(0), x.stride(1), x.stride(2)};
}

at::Tensor with_contiguous_rows(const at::Tensor& x) {
  return x.stride(3) == 1 || x.size(3) == 1 ? x : x.contiguous();
}

/// [batch, head, position, head_dim], in memory [batch, position, head, head_dim]: what a decoder reads next. It is not
/// a view of another tensor, since autograd treats views in their own way.
at::Tensor empty_like_heads(const at::Tensor& x) {
  const std::int64_t heads = x.size(1), positions = x.size(2), dims = x.size(3);
  return at::empty_strided(x.sizes(), {positions * heads * dims, dims, heads * dims, 1},
                           x.options().requires_grad(false));
}

/// Buffers of `count` numbers for each worker, aligned.
class WorkerMemory {
 public:
  explicit WorkerMemory(std::int64_t count)
      : size_(padded<float>(count)), memory_(at::empty({task_workers(), size_}, at::kFloat)) {}

  float* of(std::int64_t worker) const { return memory_.mutable_data_ptr<float>() + worker * size_; }

 private:
  std::int64_t size_;
  at::Tensor memory_;
};

/// Takes buffers one after the other from a worker's memory.
class Buffers {
 public:
  explicit Buffers(float* memory) : next_(memory) {}
  float* take(std::int64_t count) {
    float* const buffer = next_;
    next_ += padded<float>(count);
    return buffer;
  }

 private:
  float* next_;
};

float score_factor(double scale) {
  return static_cast<float>(scale * std::numbers::log2e);
}

/// What is computed, beside the inputs.
struct Call {
  double scale;
  bool causal;
  bool moments = false;  // else there are no biases
  at::Tensor key_bias;   // [batch, key], contiguous; without elements: none (autograd takes no undefined tensors)
  double slope = 0;      // of the distance
  bool has_slope = false;

  bool has_key_bias() const { return key_bias.defined() && key_bias.numel() > 0; }
  /// Biases in base 2 of `count` keys, then zeros.
  void fill_biases(std::int64_t batch, std::int64_t first, std::int64_t count, std::int64_t rows, float* to) const {
    std::fill_n(to, rows, 0.0F);
    if (!has_key_bias()) return;
    const float* const biases = key_bias.const_data_ptr<float>() + batch * key_bias.size(1) + first;
    for (std::int64_t i = 0; i < count; ++i) to[i] = score_factor(biases[i]);
  }
};

/// The result of the forward pass. The last two are undefined if they are not asked for.
struct Attended {
  at::Tensor output;          ///< [batch, head, query, head_dim]
  at::Tensor maxima;          ///< [batch, head, query]: the largest score in base 2
  at::Tensor inverse_totals;  ///< [batch, head, query]: 1 / sum of 2^(score - maximum)
  at::Tensor n_eff;           ///< [batch, head, query]
  at::Tensor residual;        ///< [batch, head, query, head_dim]: S
};

Attended attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const Call& call) {
  const Shape shape(query, key);
  const bool causal = call.causal;
  const std::int64_t width = shape.width(), dims = shape.dims;
  const TrainingTiles& tiles = training_tiles();
  const at::TensorOptions options = query.options().requires_grad(false);
  const auto empty_for_queries = [&] { return at::empty({shape.batch, shape.heads, shape.queries}, options); };
  const Attended result{empty_like_heads(query), empty_for_queries(), empty_for_queries(),
                        call.moments ? empty_for_queries() : at::Tensor(),
                        call.moments ? empty_like_heads(query) : at::Tensor()};

  const auto queries = rows_to_read(query), keys = rows_to_read(key), values = rows_to_read(value);
  const auto outputs = rows_to_write(result.output);
  const auto residuals = rows_to_write(call.moments ? result.residual : result.output);
  float* const maxima = result.maxima.mutable_data_ptr<float>();
  float* const inverse_totals = result.inverse_totals.mutable_data_ptr<float>();
  const std::int64_t panel = tiles.panel_queries, kv_heads = shape.batch * shape.kv_heads;
  std::int64_t task_queries = max_task_queries;
  while (task_queries > block_queries && kv_heads * blocks_of(shape.queries, task_queries) < enough_tasks)
    task_queries /= 2;
  const std::int64_t parts = blocks_of(shape.queries, task_queries);
  const std::int64_t max_rows = rounded_up(shape.keys, key_padding);
  const std::int64_t for_moments = padded<float>(max_rows) + (max_rows + width + 1) * padded<float>(panel);
  const WorkerMemory memory(2 * max_rows * width + 3 * panel * width + 2 * padded<float>(panel) +
                            (call.moments ? for_moments : 0));
  // A task packs the keys that its queries see, rather than all tasks those of one pass before: at the end of a pass
  // the threads wait for each other, which is long if the machine has other work.
  run_tasks(kv_heads * parts, [&](std::int64_t worker, std::int64_t task) {
    // Late queries see the most keys, so they come first.
    const std::int64_t begin = (parts - 1 - task / kv_heads) * task_queries,
                       end = std::min(begin + task_queries, shape.queries);
    const std::int64_t batch = task % kv_heads / shape.kv_heads, kv_head = task % kv_heads % shape.kv_heads;
    const std::int64_t seen = causal ? std::min(end, shape.keys) : shape.keys;
    const std::int64_t key_rows = rounded_up(seen, key_padding);
    Buffers buffers(memory.of(worker));
    float* const packed_keys = buffers.take(key_rows * width);
    float* const packed_values = buffers.take(key_rows * width);
    float* const rows = buffers.take(panel * width);
    float* const transposed = buffers.take(panel * width);
    float* const output = buffers.take(panel * width);
    float* const panel_maxima = buffers.take(panel);
    float* const panel_inverse_totals = buffers.take(panel);
    tiles.pack(keys.row(batch, kv_head, 0), keys.stride, seen, dims, key_rows, packed_keys);
    tiles.pack(values.row(batch, kv_head, 0), values.stride, seen, dims, key_rows, packed_values);
    PackedKeys packed{packed_keys, packed_values, 0, seen, dims, dims};
    PanelMoments moments{};
    if (call.moments) {
      float* const biases = buffers.take(key_rows);
      call.fill_biases(batch, 0, seen, key_rows, biases);
      packed.biases = biases;
      packed.distance_slope = score_factor(call.slope);
      moments = {buffers.take(key_rows * panel), buffers.take(panel), buffers.take(panel * width)};
    }
    for (std::int64_t head = kv_head * shape.group(); head < (kv_head + 1) * shape.group(); ++head) {
      for (std::int64_t first = begin; first < end; first += panel) {
        const std::int64_t count = std::min(panel, end - first);
        tiles.pack(queries.row(batch, head, first), queries.stride, count, dims, panel, rows);
        tile_kernels().transpose(panel, dims, rows, width, score_factor(call.scale), transposed, panel);
        const QueryPanel queries_of_panel{transposed, first, count, causal, output, panel_maxima, panel_inverse_totals};
        call.moments ? tiles.attend_with_moments(queries_of_panel, packed, moments)
                     : tiles.attend(queries_of_panel, packed);
        const std::int64_t place = (batch * shape.heads + head) * shape.queries + first;
        std::copy_n(panel_maxima, count, maxima + place);
        std::copy_n(panel_inverse_totals, count, inverse_totals + place);
        tiles.unpack(output, count, dims, 1, outputs.row(batch, head, first), outputs.stride);
        if (!call.moments) continue;
        std::copy_n(moments.n_eff, count, result.n_eff.mutable_data_ptr<float>() + place);
        tiles.unpack(moments.residual, count, dims, 1, residuals.row(batch, head, first), residuals.stride);
      }
    }
  });
  return result;
}

struct Gradients {
  at::Tensor query, key, value, key_bias, distance_slope;  // the last two: undefined if there is no such input
};

/// Gradients of a loss with respect to the results. The moments are defined if the call has them.
struct Upstream {
  at::Tensor output, n_eff, residual;
};

/// The mean of the values of each kv head, [batch, kv_head, head_dim]: offsets from it are small, so products of their
/// squares lose little in float32.
at::Tensor mean_values(const at::Tensor& value) {
  const std::int64_t kv_heads = value.size(1), positions = value.size(2), dims = value.size(3);
  const at::Tensor means = at::empty({value.size(0), kv_heads, dims}, value.options().requires_grad(false));
  const auto values = rows_to_read(value);
  run_tasks(value.size(0) * kv_heads, [&](std::int64_t, std::int64_t task) {
    std::vector<double> sums(static_cast<std::size_t>(dims));
    for (std::int64_t position = 0; position < positions; ++position) {
      const float* const row = values.row(task / kv_heads, task % kv_heads, position);
      for (std::int64_t i = 0; i < dims; ++i) sums[static_cast<std::size_t>(i)] += row[i];
    }
    float* const mean = means.mutable_data_ptr<float>() + task * dims;
    for (std::int64_t i = 0; i < dims; ++i)
      mean[i] = static_cast<float>(sums[static_cast<std::size_t>(i)] / static_cast<double>(positions));
  });
  return means;
}

/// The backward pass of one call. A task is a part of the keys of one kv head with all queries that see them. It
/// computes dK and dV of its keys, and its share of dQ.
///
/// Moments take the same products. With u = v - c for a centre c, e the output minus c, and g_e, g_S, g_n the gradients
/// of output, S and n_eff, the effect of the weight p_j on the loss is a_j = [g_e - 2 g_S e | g_S] . [u_j | u_j^2] - 2
/// g_n n_eff^2 p_j, but for a number that is the same for all keys. So values are extended to [u | u^2] and the
/// gradients of the output to [g_e - 2 g_S e | g_S]. The sums P^T of the latter are [A | B], and dv_j = A_j + 2 u_j
/// B_j.
class BackwardPass {
 public:
  BackwardPass(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const Attended& attended,
               const Upstream& upstream, const Call& call)
      : shape_(query, key),
        call_(call),
        value_dims_(call.moments ? 2 * shape_.dims : shape_.dims),
        queries_(rows_to_read(query)),
        keys_(rows_to_read(key)),
        values_(rows_to_read(value)),
        outputs_(rows_to_read(attended.output)),
        gradients_(rows_to_read(upstream.output)),
        attended_(attended),
        upstream_(upstream),
        result_{empty_like_heads(query), empty_like_heads(key), empty_like_heads(value), {}, {}},
        query_gradients_(rows_to_write(result_.query)),
        key_gradients_(rows_to_write(result_.key)),
        value_gradients_(rows_to_write(result_.value)) {
    const std::int64_t kv_heads = std::max<std::int64_t>(1, shape_.batch * shape_.kv_heads);
    const std::int64_t wanted = std::clamp<std::int64_t>(blocks_of(enough_tasks, kv_heads), 1, max_parts);
    part_keys_ = std::max(fewest_part_keys, rounded_up(blocks_of(shape_.keys, wanted), key_padding));
    parts_ = blocks_of(shape_.keys, part_keys_);
    part_rows_ = rounded_up(std::min(part_keys_, shape_.keys), key_padding);
    if (parts_ > 1)
      shares_ =
          at::empty({parts_ - 1, shape_.batch, shape_.heads, shape_.queries, shape_.dims}, result_.query.options());
    if (!call.moments) return;
    centres_ = mean_values(value);
    bias_shares_ = at::empty({shape_.kv_heads, shape_.batch, shape_.keys}, result_.query.options());
    slope_shares_ = at::zeros({shape_.batch * shape_.kv_heads * parts_}, at::kDouble);
  }

  Gradients run() {
    const std::int64_t kv_heads = shape_.batch * shape_.kv_heads, width = shape_.width(), wide = value_width();
    const WorkerMemory memory(2 * part_rows_ * (width + wide) + 2 * padded<float>(part_rows_) +
                              block_queries * (3 * width + 3 * wide) + 4 * block_queries);
    // The first part of the keys is seen by the most queries, so it comes first.
    run_tasks(kv_heads * parts_, [&](std::int64_t worker, std::int64_t task) {
      run_part(Buffers(memory.of(worker)), task % kv_heads, task / kv_heads);
    });
    if (parts_ > 1) {
      run_tasks(shape_.batch * shape_.heads,
                [&](std::int64_t, std::int64_t task) { add_shares(task / shape_.heads, task % shape_.heads); });
    }
    if (call_.has_key_bias()) {
      result_.key_bias = bias_shares_[0].clone();
      for (std::int64_t head = 1; head < shape_.kv_heads; ++head) result_.key_bias.add_(bias_shares_[head]);
    }
    if (call_.has_slope) result_.distance_slope = slope_shares_.sum().to(at::kFloat).view({1});
    return result_;
  }

 private:
  std::int64_t value_width() const { return packed_width(value_dims_); }

  /// The first query that sees a key of this part.
  std::int64_t first_query(std::int64_t part) const { return call_.causal ? part * part_keys_ : 0; }

  /// The share of dQ of a part: the first part writes to the result.
  HeadRows<float> share(std::int64_t part) const {
    return part == 0 ? query_gradients_ : rows_to_write(shares_[part - 1]);
  }

  const float* centre(std::int64_t batch, std::int64_t kv_head) const {
    return centres_.const_data_ptr<float>() + (batch * shape_.kv_heads + kv_head) * shape_.dims;
  }

  void run_part(Buffers buffers, std::int64_t kv_head, std::int64_t part) const {
    const std::int64_t batch = kv_head / shape_.kv_heads, head = kv_head % shape_.kv_heads, width = shape_.width();
    const TrainingTiles& tiles = training_tiles();
    const std::int64_t first = part * part_keys_, count = std::min(part_keys_, shape_.keys - first);
    const std::int64_t rows = rounded_up(count, key_padding), wide = value_width();
    float* const keys = buffers.take(rows * width);
    float* const values = buffers.take(rows * wide);
    KeyGradients gradients{buffers.take(rows * width), buffers.take(rows * wide)};
    tiles.pack(keys_.row(batch, head, first), keys_.stride, count, shape_.dims, rows, keys);
    std::fill_n(gradients.keys, rows * width, 0.0F);
    std::fill_n(gradients.values, rows * wide, 0.0F);
    PackedKeys packed{keys, values, first, count, shape_.dims, value_dims_};
    if (call_.moments) {
      extend_values(batch, head, first, count, rows, values);
      float* const biases = buffers.take(rows);
      call_.fill_biases(batch, first, count, rows, biases);
      packed.biases = biases;
      packed.distance_slope = score_factor(call_.slope);
      gradients.biases = buffers.take(rows);
      std::fill_n(gradients.biases, rows, 0.0F);
      gradients.distance_slope =
          slope_shares_.mutable_data_ptr<double>() + part * shape_.batch * shape_.kv_heads + kv_head;
    } else {
      tiles.pack(values_.row(batch, head, first), values_.stride, count, shape_.dims, rows, values);
    }
    const HeadRows<float> query_gradients = share(part);
    for (std::int64_t i = 0; i < shape_.group(); ++i) {
      const std::int64_t query_head = head * shape_.group() + i;
      for (std::int64_t query = first_query(part) / block_queries * block_queries; query < shape_.queries;
           query += block_queries)
        run_block(buffers, batch, query_head, query, packed, gradients, query_gradients);
    }
    tiles.unpack(gradients.keys, count, shape_.dims, static_cast<float>(call_.scale),
                 key_gradients_.row(batch, head, first), key_gradients_.stride);
    if (!call_.moments) {
      tiles.unpack(gradients.values, count, shape_.dims, 1, value_gradients_.row(batch, head, first),
                   value_gradients_.stride);
      return;
    }
    store_value_gradients(batch, head, first, count, values, gradients.values);
    std::copy_n(gradients.biases, count,
                bias_shares_.mutable_data_ptr<float>() + (head * shape_.batch + batch) * shape_.keys + first);
  }

  /// [u | u^2] of `count` keys, then zeros.
  void extend_values(std::int64_t batch, std::int64_t head, std::int64_t first, std::int64_t count, std::int64_t rows,
                     float* values) const {
    const std::int64_t dims = shape_.dims, wide = value_width();
    const float* const mean = centre(batch, head);
    std::fill_n(values, rows * wide, 0.0F);
    for (std::int64_t key = 0; key < count; ++key) {
      const float* const value = values_.row(batch, head, first + key);
      float* const extended = values + key * wide;
      for (std::int64_t i = 0; i < dims; ++i) {
        extended[i] = value[i] - mean[i];
        extended[dims + i] = extended[i] * extended[i];
      }
    }
  }

  /// dv = A + 2 u B.
  void store_value_gradients(std::int64_t batch, std::int64_t head, std::int64_t first, std::int64_t count,
                             const float* values, const float* sums) const {
    const std::int64_t dims = shape_.dims, wide = value_width();
    for (std::int64_t key = 0; key < count; ++key) {
      float* const to = value_gradients_.row(batch, head, first + key);
      const float *const value = values + key * wide, *const sum = sums + key * wide;
      for (std::int64_t i = 0; i < dims; ++i) to[i] = sum[i] + 2 * value[i] * sum[dims + i];
    }
  }

  /// [g_e - 2 g_S e | g_S] of a block of queries; delta, the mean of a_j with the weights p_j; -2 g_n n_eff^2. What
  /// lies after `count` queries becomes 0.
  /// @param means  [block_queries, 2 head_dim], for its own use
  void extend_gradients(std::int64_t batch, std::int64_t head, std::int64_t first, std::int64_t count, float* means,
                        float* gradients, float* deltas, float* square_gradients) const {
    const std::int64_t dims = shape_.dims, wide = value_width();
    const float* const mean = centre(batch, head / shape_.group());
    const auto residuals = rows_to_read(attended_.residual), residual_gradients = rows_to_read(upstream_.residual);
    std::fill_n(gradients, block_queries * wide, 0.0F);
    std::fill_n(deltas, block_queries, 0.0F);
    std::fill_n(square_gradients, block_queries, 0.0F);
    for (std::int64_t query = 0; query < count; ++query) {
      const float* const output = outputs_.row(batch, head, first + query);
      const float* const gradient = gradients_.row(batch, head, first + query);
      const float* const residual = residuals.row(batch, head, first + query);
      const float* const residual_gradient = residual_gradients.row(batch, head, first + query);
      float* const extended = gradients + query * wide;
      float* const value_means = means + query * 2 * dims;  // the means of [u | u^2]
      for (std::int64_t i = 0; i < dims; ++i) {
        const float estimate = output[i] - mean[i];
        extended[i] = gradient[i] - 2 * residual_gradient[i] * estimate;
        extended[dims + i] = residual_gradient[i];
        value_means[i] = estimate;
        value_means[dims + i] = residual[i] + estimate * estimate;
      }
    }
    training_tiles().row_products(gradients, means, 2 * dims, count, 2 * dims, deltas);
    const std::int64_t place = (batch * shape_.heads + head) * shape_.queries + first;
    const float* const n_effs = attended_.n_eff.const_data_ptr<float>() + place;
    const float* const n_eff_gradients = upstream_.n_eff.const_data_ptr<float>() + place;
    for (std::int64_t query = 0; query < count; ++query) {
      square_gradients[query] = -2 * n_eff_gradients[query] * n_effs[query] * n_effs[query];
      deltas[query] += square_gradients[query] / n_effs[query];
    }
  }

  void run_block(Buffers buffers, std::int64_t batch, std::int64_t head, std::int64_t first, const PackedKeys& keys,
                 const KeyGradients& key_gradients, const HeadRows<float>& query_gradients) const {
    const TrainingTiles& tiles = training_tiles();
    const std::int64_t width = shape_.width(), dims = shape_.dims, wide = value_width(),
                       count = std::min(block_queries, shape_.queries - first);
    float* const queries = buffers.take(block_queries * width);
    float* const gradients = buffers.take(block_queries * wide);
    float* const transposed_queries = buffers.take(block_queries * width);
    float* const transposed_gradients = buffers.take(block_queries * wide);
    float* const sums = buffers.take(block_queries * width);
    float* const deltas = buffers.take(block_queries);
    float* const maxima = buffers.take(block_queries);
    float* const inverse_totals = buffers.take(block_queries);
    float* const square_gradients = buffers.take(block_queries);
    tiles.pack(queries_.row(batch, head, first), queries_.stride, count, dims, block_queries, queries);
    if (call_.moments) {
      extend_gradients(batch, head, first, count, buffers.take(block_queries * wide), gradients, deltas,
                       square_gradients);
    } else {
      tiles.pack(gradients_.row(batch, head, first), gradients_.stride, count, dims, block_queries, gradients);
      tiles.row_products(gradients, outputs_.row(batch, head, first), outputs_.stride, count, dims, deltas);
      std::fill(deltas + count, deltas + block_queries, 0.0F);
    }
    tile_kernels().transpose(block_queries, dims, queries, width, score_factor(call_.scale), transposed_queries,
                             block_queries);
    tile_kernels().transpose(block_queries, value_dims_, gradients, wide, 1, transposed_gradients, block_queries);
    const std::int64_t place = (batch * shape_.heads + head) * shape_.queries + first;
    // Columns after the last query have the maximum infinity, so their weights are 0 whatever the biases are.
    std::fill(std::copy_n(attended_.maxima.const_data_ptr<float>() + place, count, maxima), maxima + block_queries,
              std::numeric_limits<float>::infinity());
    std::fill(std::copy_n(attended_.inverse_totals.const_data_ptr<float>() + place, count, inverse_totals),
              inverse_totals + block_queries, 0.0F);
    std::fill_n(sums, block_queries * width, 0.0F);
    tiles.add_gradients({.transposed_queries = transposed_queries,
                         .transposed_gradients = transposed_gradients,
                         .queries = queries,
                         .gradients = gradients,
                         .maxima = maxima,
                         .inverse_totals = inverse_totals,
                         .deltas = deltas,
                         .first = first,
                         .count = count,
                         .causal = call_.causal,
                         .query_gradients = sums,
                         .square_gradients = square_gradients},
                        keys, key_gradients);
    tiles.unpack(sums, count, dims, static_cast<float>(call_.scale), query_gradients.row(batch, head, first),
                 query_gradients.stride);
  }

  /// dQ += the shares of the parts after the first, in order.
  void add_shares(std::int64_t batch, std::int64_t head) const {
    for (std::int64_t part = 1; part < parts_; ++part) {
      const HeadRows<float> from = share(part);
      // A block of queries was computed whole; rows before the first query of the part have the share 0.
      for (std::int64_t query = first_query(part); query < shape_.queries; ++query) {
        const float* const added = from.row(batch, head, query);
        float* const place = query_gradients_.row(batch, head, query);
        for (std::int64_t i = 0; i < shape_.dims; ++i) place[i] += added[i];
      }
    }
  }

  Shape shape_;
  const Call& call_;
  std::int64_t value_dims_;  // of extended values
  HeadRows<const float> queries_, keys_, values_, outputs_, gradients_;
  const Attended& attended_;
  const Upstream& upstream_;
  Gradients result_;
  HeadRows<float> query_gradients_, key_gradients_, value_gradients_;
  at::Tensor shares_;   // [part - 1, batch, head, query, head_dim]: the share of dQ of the parts after the first
  at::Tensor centres_;  // [batch, kv_head, head_dim]
  at::Tensor bias_shares_, slope_shares_;  // [kv_head, batch, key]; [part * batch * kv_head]
  std::int64_t part_keys_ = 0, parts_ = 0, part_rows_ = 0;
};

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  /// @param key_bias, distance_slope  without elements: none
  static variable_list forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const at::Tensor& key_bias, const at::Tensor& distance_slope,
                               double scale, bool causal, bool moments) {
    const Call call{scale,
                    causal,
                    moments,
                    key_bias,
                    distance_slope.numel() > 0 ? distance_slope.item<double>() : 0,
                    distance_slope.numel() > 0};
    const Attended result = attend(query, key, value, call);
    context->saved_data["scale"] = scale;
    context->saved_data["causal"] = causal;
    context->saved_data["moments"] = moments;
    context->saved_data["slope"] = call.slope;
    context->saved_data["has_slope"] = call.has_slope;
    context->save_for_backward({query, key, value, key_bias, result.output, result.maxima, result.inverse_totals,
                                result.n_eff, result.residual});
    if (!moments) return {result.output};
    return {result.output, result.n_eff, result.residual};
  }

  static variable_list backward(AutogradContext* context, const variable_list& incoming) {
    check_first_derivative("training_attention");
    const variable_list saved = context->get_saved_variables();
    const auto of = [&](std::size_t i, const at::Tensor& result) {
      return incoming[i].defined() ? incoming[i] : at::zeros_like(result);
    };
    const Call call{context->saved_data["scale"].toDouble(), context->saved_data["causal"].toBool(),
                    context->saved_data["moments"].toBool(), saved[3],
                    context->saved_data["slope"].toDouble(), context->saved_data["has_slope"].toBool()};
    const Attended attended{saved[4], saved[5], saved[6], saved[7], saved[8]};
    Upstream upstream{with_contiguous_rows(of(0, attended.output)), {}, {}};
    if (call.moments) {
      upstream.n_eff = of(1, attended.n_eff).contiguous();
      upstream.residual = with_contiguous_rows(of(2, attended.residual));
    }
    const Gradients result = BackwardPass(saved[0], saved[1], saved[2], attended, upstream, call).run();
    return {result.query, result.key, result.value, result.key_bias, result.distance_slope, {}, {}, {}};
  }
};

bool is_taken(const at::Tensor& x) {
  return x.device().is_cpu() && x.scalar_type() == at::kFloat && x.dim() == 4 && x.size(3) > 0 &&
         x.size(3) <= largest_head_dim;
}

}  // namespace

bool training_attention_takes(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  return is_taken(query) && is_taken(key) && is_taken(value) && key.size(3) == value.size(3);
}

namespace {

struct ContiguousInputs {
  at::Tensor query, key, value;
};

ContiguousInputs checked_inputs(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  CHECK(training_attention_takes(query, key, value),
        "training_attention: inputs must be float32 on the CPU, [batch, head, position, head_dim] with head_dim 1..{}",
        largest_head_dim);
  CHECK(key.sizes() == value.sizes() && key.size(0) == query.size(0) && key.size(3) == query.size(3),
        "training_attention: query {}, key {} and value {} do not fit each other", query.sizes().vec(),
        key.sizes().vec(), value.sizes().vec());
  CHECK(key.size(1) > 0 && query.size(1) % key.size(1) == 0,
        "training_attention: {} heads are not a multiple of {} kv heads", query.size(1), key.size(1));
  CHECK(key.size(2) > 0, "training_attention: there is no key");
  return {with_contiguous_rows(query), with_contiguous_rows(key), with_contiguous_rows(value)};
}

}  // namespace

at::Tensor training_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double scale,
                              bool causal) {
  const auto [queries, keys, values] = checked_inputs(query, key, value);
  const bool tracked = is_tracked(queries) || is_tracked(keys) || is_tracked(values);
  const at::Tensor none = at::empty({0}, queries.options());
  return tracked ? AttentionFunction::apply(queries, keys, values, none, none, scale, causal, /*moments=*/false)[0]
                 : attend(queries, keys, values, {scale, causal}).output;
}

TrainedMoments training_attention_moments(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                          double scale, bool causal, const ScoreBiases& biases) {
  const auto [queries, keys, values] = checked_inputs(query, key, value);
  const at::Tensor none = at::empty({0}, queries.options());
  const auto or_none = [&none](const at::Tensor& x) { return x.defined() ? x.contiguous() : none; };
  CHECK(!biases.key.defined() || (biases.key.sizes() == at::IntArrayRef({keys.size(0), keys.size(2)}) &&
                                  biases.key.scalar_type() == at::kFloat),
        "training_attention: the key bias must be float32 [batch, key]");
  CHECK(!biases.distance_slope.defined() || biases.distance_slope.numel() == 1,
        "training_attention: the distance slope must be one number");
  const variable_list found =
      AttentionFunction::apply(queries, keys, values, or_none(biases.key), or_none(biases.distance_slope).view(-1),
                               scale, causal, /*moments=*/true);
  return {found[0], found[1], found[2]};
}

}  // namespace gainlens::kernels
