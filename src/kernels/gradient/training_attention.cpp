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
#include <numbers>

namespace gainlens::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t largest_head_dim = 256;

/// A pass is divided into at least this many tasks if the shape allows for it.
constexpr std::int64_t enough_tasks = 16;

/// Queries that a task of the forward pass handles at most, for each head of a kv head.
constexpr std::int64_t most_task_queries = 256;

/// The backward pass divides the keys into parts if there are few kv heads. Each part holds its own sums of dQ until
/// the end. A rule of the shape alone: the bits must not depend on the number of threads.
constexpr std::int64_t most_parts = 8, fewest_part_keys = 256;

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

/// The result of the forward pass.
struct Attended {
  at::Tensor output;          ///< [batch, head, query, head_dim]
  at::Tensor maxima;          ///< [batch, head, query]: the largest score in base 2
  at::Tensor inverse_totals;  ///< [batch, head, query]: 1 / sum of 2^(score - maximum)
};

Attended attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double scale, bool causal) {
  const Shape shape(query, key);
  const std::int64_t width = shape.width(), dims = shape.dims;
  const TrainingTiles& tiles = training_tiles();
  const at::TensorOptions options = query.options().requires_grad(false);
  const Attended result{empty_like_heads(query), at::empty({shape.batch, shape.heads, shape.queries}, options),
                        at::empty({shape.batch, shape.heads, shape.queries}, options)};

  const auto queries = rows_to_read(query), keys = rows_to_read(key), values = rows_to_read(value);
  const auto outputs = rows_to_write(result.output);
  float* const maxima = result.maxima.mutable_data_ptr<float>();
  float* const inverse_totals = result.inverse_totals.mutable_data_ptr<float>();
  const std::int64_t panel = tiles.panel_queries, kv_heads = shape.batch * shape.kv_heads;
  std::int64_t of_task = most_task_queries;
  while (of_task > block_queries && kv_heads * blocks_of(shape.queries, of_task) < enough_tasks) of_task /= 2;
  const std::int64_t parts = blocks_of(shape.queries, of_task);
  const WorkerMemory memory(2 * rounded_up(shape.keys, key_padding) * width + 3 * panel * width +
                            2 * padded<float>(panel));
  // A task packs the keys that its queries see, rather than all tasks those of one pass before: at the end of a pass
  // the threads wait for each other, which is long if the machine has other work.
  run_tasks(kv_heads * parts, [&](std::int64_t worker, std::int64_t task) {
    // Late queries see the most keys, so they come first.
    const std::int64_t begin = (parts - 1 - task / kv_heads) * of_task, end = std::min(begin + of_task, shape.queries);
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
    const PackedKeys packed{packed_keys, packed_values, 0, seen, dims};
    for (std::int64_t head = kv_head * shape.group(); head < (kv_head + 1) * shape.group(); ++head) {
      for (std::int64_t first = begin; first < end; first += panel) {
        const std::int64_t count = std::min(panel, end - first);
        tiles.pack(queries.row(batch, head, first), queries.stride, count, dims, panel, rows);
        tile_kernels().transpose(panel, dims, rows, width, score_factor(scale), transposed, panel);
        tiles.attend({transposed, first, count, causal, output, panel_maxima, panel_inverse_totals}, packed);
        const std::int64_t place = (batch * shape.heads + head) * shape.queries + first;
        std::copy_n(panel_maxima, count, maxima + place);
        std::copy_n(panel_inverse_totals, count, inverse_totals + place);
        tiles.unpack(output, count, dims, 1, outputs.row(batch, head, first), outputs.stride);
      }
    }
  });
  return result;
}

struct Gradients {
  at::Tensor query, key, value;
};

/// The backward pass of one call. A task is a part of the keys of one kv head with all queries that see them. It
/// computes dK and dV of its keys, and its share of dQ.
class BackwardPass {
 public:
  BackwardPass(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const Attended& attended,
               const at::Tensor& gradient, double scale, bool causal)
      : shape_(query, key),
        scale_(scale),
        causal_(causal),
        queries_(rows_to_read(query)),
        keys_(rows_to_read(key)),
        values_(rows_to_read(value)),
        outputs_(rows_to_read(attended.output)),
        gradients_(rows_to_read(gradient)),
        maxima_(attended.maxima.const_data_ptr<float>()),
        inverse_totals_(attended.inverse_totals.const_data_ptr<float>()),
        result_{empty_like_heads(query), empty_like_heads(key), empty_like_heads(value)},
        query_gradients_(rows_to_write(result_.query)),
        key_gradients_(rows_to_write(result_.key)),
        value_gradients_(rows_to_write(result_.value)) {
    const std::int64_t kv_heads = std::max<std::int64_t>(1, shape_.batch * shape_.kv_heads);
    const std::int64_t wanted = std::clamp<std::int64_t>(blocks_of(enough_tasks, kv_heads), 1, most_parts);
    part_keys_ = std::max(fewest_part_keys, rounded_up(blocks_of(shape_.keys, wanted), key_padding));
    parts_ = blocks_of(shape_.keys, part_keys_);
    part_rows_ = rounded_up(std::min(part_keys_, shape_.keys), key_padding);
    if (parts_ > 1)
      shares_ =
          at::empty({parts_ - 1, shape_.batch, shape_.heads, shape_.queries, shape_.dims}, result_.query.options());
  }

  Gradients run() {
    const std::int64_t kv_heads = shape_.batch * shape_.kv_heads, width = shape_.width();
    const WorkerMemory memory(4 * part_rows_ * width + 5 * block_queries * width + 3 * block_queries);
    // The first part of the keys is seen by the most queries, so it comes first.
    run_tasks(kv_heads * parts_, [&](std::int64_t worker, std::int64_t task) {
      run_part(Buffers(memory.of(worker)), task % kv_heads, task / kv_heads);
    });
    if (parts_ > 1) {
      run_tasks(shape_.batch * shape_.heads,
                [&](std::int64_t, std::int64_t task) { add_shares(task / shape_.heads, task % shape_.heads); });
    }
    return result_;
  }

 private:
  /// The first query that sees a key of this part.
  std::int64_t first_query(std::int64_t part) const { return causal_ ? part * part_keys_ : 0; }

  /// The share of dQ of a part: the first part writes to the result.
  HeadRows<float> share(std::int64_t part) const {
    return part == 0 ? query_gradients_ : rows_to_write(shares_[part - 1]);
  }

  void run_part(Buffers buffers, std::int64_t kv_head, std::int64_t part) const {
    const std::int64_t batch = kv_head / shape_.kv_heads, head = kv_head % shape_.kv_heads, width = shape_.width();
    const TrainingTiles& tiles = training_tiles();
    const std::int64_t first = part * part_keys_, count = std::min(part_keys_, shape_.keys - first);
    const std::int64_t rows = rounded_up(count, key_padding);
    float* const keys = buffers.take(rows * width);
    float* const values = buffers.take(rows * width);
    float* const key_gradients = buffers.take(rows * width);
    float* const value_gradients = buffers.take(rows * width);
    tiles.pack(keys_.row(batch, head, first), keys_.stride, count, shape_.dims, rows, keys);
    tiles.pack(values_.row(batch, head, first), values_.stride, count, shape_.dims, rows, values);
    std::fill_n(key_gradients, rows * width, 0.0F);
    std::fill_n(value_gradients, rows * width, 0.0F);
    const PackedKeys packed{keys, values, first, count, shape_.dims};
    const HeadRows<float> query_gradients = share(part);
    for (std::int64_t i = 0; i < shape_.group(); ++i) {
      const std::int64_t query_head = head * shape_.group() + i;
      for (std::int64_t query = first_query(part) / block_queries * block_queries; query < shape_.queries;
           query += block_queries)
        run_block(buffers, batch, query_head, query, packed, key_gradients, value_gradients, query_gradients);
    }
    tiles.unpack(key_gradients, count, shape_.dims, static_cast<float>(scale_), key_gradients_.row(batch, head, first),
                 key_gradients_.stride);
    tiles.unpack(value_gradients, count, shape_.dims, 1, value_gradients_.row(batch, head, first),
                 value_gradients_.stride);
  }

  void run_block(Buffers buffers, std::int64_t batch, std::int64_t head, std::int64_t first, const PackedKeys& keys,
                 float* key_gradients, float* value_gradients, const HeadRows<float>& query_gradients) const {
    const TrainingTiles& tiles = training_tiles();
    const std::int64_t width = shape_.width(), dims = shape_.dims,
                       count = std::min(block_queries, shape_.queries - first);
    float* const queries = buffers.take(block_queries * width);
    float* const gradients = buffers.take(block_queries * width);
    float* const transposed_queries = buffers.take(block_queries * width);
    float* const transposed_gradients = buffers.take(block_queries * width);
    float* const sums = buffers.take(block_queries * width);
    float* const deltas = buffers.take(block_queries);
    float* const maxima = buffers.take(block_queries);
    float* const inverse_totals = buffers.take(block_queries);
    tiles.pack(queries_.row(batch, head, first), queries_.stride, count, dims, block_queries, queries);
    tiles.pack(gradients_.row(batch, head, first), gradients_.stride, count, dims, block_queries, gradients);
    tile_kernels().transpose(block_queries, dims, queries, width, score_factor(scale_), transposed_queries,
                             block_queries);
    tile_kernels().transpose(block_queries, dims, gradients, width, 1, transposed_gradients, block_queries);
    tiles.row_products(gradients, outputs_.row(batch, head, first), outputs_.stride, count, dims, deltas);
    std::fill(deltas + count, deltas + block_queries, 0.0F);
    const std::int64_t place = (batch * shape_.heads + head) * shape_.queries + first;
    std::fill(std::copy_n(maxima_ + place, count, maxima), maxima + block_queries, 0.0F);
    std::fill(std::copy_n(inverse_totals_ + place, count, inverse_totals), inverse_totals + block_queries, 0.0F);
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
                         .causal = causal_,
                         .query_gradients = sums},
                        keys, key_gradients, value_gradients);
    tiles.unpack(sums, count, dims, static_cast<float>(scale_), query_gradients.row(batch, head, first),
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
  double scale_;
  bool causal_;
  HeadRows<const float> queries_, keys_, values_, outputs_, gradients_;
  const float* maxima_;
  const float* inverse_totals_;
  Gradients result_;
  HeadRows<float> query_gradients_, key_gradients_, value_gradients_;
  at::Tensor shares_;  // [part - 1, batch, head, query, head_dim]: the share of dQ of the parts after the first
  std::int64_t part_keys_ = 0, parts_ = 0, part_rows_ = 0;
};

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, double scale, bool causal) {
    const Attended result = attend(query, key, value, scale, causal);
    context->saved_data["scale"] = scale;
    context->saved_data["causal"] = causal;
    context->save_for_backward({query, key, value, result.output, result.maxima, result.inverse_totals});
    return result.output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& incoming) {
    check_first_derivative("training_attention");
    const variable_list saved = context->get_saved_variables();
    const Gradients result =
        BackwardPass(saved[0], saved[1], saved[2], {saved[3], saved[4], saved[5]}, with_contiguous_rows(incoming[0]),
                     context->saved_data["scale"].toDouble(), context->saved_data["causal"].toBool())
            .run();
    return {result.query, result.key, result.value, {}, {}};
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

at::Tensor training_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double scale,
                              bool causal) {
  CHECK(training_attention_takes(query, key, value),
        "training_attention: inputs must be float32 on the CPU, [batch, head, position, head_dim] with head_dim 1..{}",
        largest_head_dim);
  CHECK(key.sizes() == value.sizes() && key.size(0) == query.size(0) && key.size(3) == query.size(3),
        "training_attention: query {}, key {} and value {} do not fit each other", query.sizes().vec(),
        key.sizes().vec(), value.sizes().vec());
  CHECK(key.size(1) > 0 && query.size(1) % key.size(1) == 0,
        "training_attention: {} heads are not a multiple of {} kv heads", query.size(1), key.size(1));
  CHECK(key.size(2) > 0, "training_attention: there is no key");
  const at::Tensor queries = with_contiguous_rows(query), keys = with_contiguous_rows(key),
                   values = with_contiguous_rows(value);
  const bool tracked = is_tracked(queries) || is_tracked(keys) || is_tracked(values);
  return tracked ? AttentionFunction::apply(queries, keys, values, scale, causal)
                 : attend(queries, keys, values, scale, causal).output;
}

}  // namespace gainlens::kernels
