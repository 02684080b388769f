#include "kernels/streaming_block.h"

#include "kernels/matrix_product.h"
#include "kernels/two_pass.h"

#include <algorithm>
#include <cmath>

namespace gainlens::kernels {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// -p ln p, 0 at p = 0. `rest` is 1 - p: near p = 1 the logarithm of p itself would cancel.
double entropy_term(double p, double rest) {
  if (p > 0.5) return -p * std::log1p(-rest);
  return p > 0 ? -p * std::log(p) : 0;
}

/// What one query's sums and the score of key 0 amount to.
struct RowMass {
  MassSplit split;
  double entropy;
  double log_total;  ///< ln sum exp(s) over all visible keys
};

RowMass row_mass(const SoftmaxSums& others, double first_score) {
  const double maximum = std::max(others.maximum, first_score);
  const double others_total = others.total > 0 ? others.total * std::exp(others.maximum - maximum) : 0;
  const double first_total = std::exp(first_score - maximum);
  const double total = others_total + first_total;
  RowMass row{.split = {.first = first_total / total, .others = others_total / total, .n_eff = 1, .n_eff_others = QueryScalars::nan},
              .entropy = 0,
              .log_total = maximum + std::log(total)};
  if (others.total == 0) return row;
  // The bounds n_eff >= 1 and entropy >= 0 hold exactly; rounding may cross them by a unit in the last place.
  MassSplit& split = row.split;
  split.n_eff_others = std::max(1.0, others.total * others.total / others.total_squares);
  split.n_eff = std::max(1.0, 1 / (split.first * split.first + split.others * split.others / split.n_eff_others));
  const double entropy_others = std::max(0.0, std::log(others.total) - others.weighted_score / others.total);
  row.entropy = split.others * entropy_others + entropy_term(split.others, split.first) + entropy_term(split.first, split.others);
  return row;
}

}  // namespace

template <typename Real>
void BlockStream<Real>::reserve_buffers(WorkerBuffers& buffers, const AttentionShape& shape, std::int64_t rows) {
  const at::ScalarType type = c10::CppTypeToScalarType<Real>::value;
  const std::int64_t width = padded<Real>(shape.head_dim);
  reserve(buffers.queries, {rows, shape.head_dim}, type);
  reserve(buffers.scores, {rows, tile_keys}, type);
  reserve(buffers.accumulators, {rows, 2 * width}, type);
  reserve(buffers.first_scores, {rows, first_keys}, type);
  reserve(buffers.early_values, {centre_keys, width}, type);
  reserve(buffers.dimensions, {6, width}, type);
}

template <typename Real>
void BlockStream<Real>::run(const QueryBlock& block, ColumnSums* columns) {
  load_block(block);
  const KeyRange all = block_keys(call_.options, call_.shape, block);
  for (std::int64_t begin = all.begin; begin < all.end; begin += tile_keys) {
    const KeyRange keys{begin, std::min(begin + tile_keys, all.end)};
    score_tile(block, keys);
    absorb_tile(block, keys);
    if (block.two_pass) continue;
    const Real* values =
        call_.workspace.packed.template const_data_ptr<Real>() + (block.kv_head * call_.shape.length + begin) * 2 * width();
    add_product<Real>(rows_, 2 * width(), keys.end - keys.begin, {row_of(buffers_.scores, 0), tile_keys}, {values, 2 * width()},
                      {row_of(buffers_.accumulators, 0), 2 * width()});
  }
  for (std::int64_t row = 0; row < rows_; ++row) {
    const std::int64_t member = row / (block.end - block.begin);
    if (query_of(block, row) == block.begin) columns[member] = {};
    finish_row(block, row, columns[member]);
  }
}

template <typename Real>
void BlockStream<Real>::load_block(const QueryBlock& block) {
  rows_ = (block.end - block.begin) * call_.shape.group;
  sums_.assign(static_cast<std::size_t>(rows_), SoftmaxSums{});
  for (std::int64_t row = 0; row < rows_; ++row) {
    call_.query.load(head_of(block, row), query_of(block, row), row_of(buffers_.queries, row));
    std::fill_n(row_of(buffers_.first_scores, row), first_keys, -std::numeric_limits<Real>::infinity());
  }
  std::fill_n(row_of(buffers_.accumulators, 0), rows_ * 2 * width(), Real{0});
  if (!block.two_pass) return;
  for (std::int64_t key = 0; key < block.end; ++key) {
    Real* values = row_of(buffers_.early_values, key);
    std::fill_n(values, width(), Real{0});
    call_.value.load(block.kv_head, key, values);
  }
}

/// Scores of the tile in `scores`: scaled, capped, biased; not yet masked.
template <typename Real>
void BlockStream<Real>::score_tile(const QueryBlock& block, KeyRange keys) {
  const std::int64_t columns = keys.end - keys.begin;
  const Real* key = call_.key.template const_data_ptr<Real>() + block.kv_head * call_.key.stride(0) + keys.begin * call_.key.stride(1);
  product_transposed<Real>(rows_, columns, call_.shape.head_dim, static_cast<Real>(call_.shape.scale),
                           {row_of(buffers_.queries, 0), call_.shape.head_dim}, {key, call_.key.stride(1)},
                           {row_of(buffers_.scores, 0), tile_keys});
  for (std::int64_t row = 0; row < rows_; ++row) {
    Real* scores = row_of(buffers_.scores, row);
    if (call_.options.soft_cap > 0) {
      std::fill(scores + columns, scores + padded<Real>(columns), Real{0});
      cap_scores(scores, columns, static_cast<Real>(call_.options.soft_cap));
    }
    if (call_.bias.defined()) {
      const std::int64_t bias_row = call_.bias.size(0) > 1 ? head_of(block, row) : 0;
      const Real* bias = call_.bias.template const_data_ptr<Real>() + bias_row * call_.shape.length + keys.begin;
      for (std::int64_t i = 0; i < columns; ++i) scores[i] += bias[i];
    }
  }
}

/// Masks the tile, takes its rows into their sums and leaves the weights in `scores`. Key 0 is left out, and its score kept.
template <typename Real>
void BlockStream<Real>::absorb_tile(const QueryBlock& block, KeyRange keys) {
  const std::int64_t columns = keys.end - keys.begin;
  for (std::int64_t row = 0; row < rows_; ++row) {
    Real* scores = row_of(buffers_.scores, row);
    const KeyRange visible = visible_keys(call_.options, call_.shape.length, query_of(block, row));
    std::int64_t begin = std::max<std::int64_t>(visible.begin - keys.begin, 0);
    const std::int64_t end = std::min(visible.end - keys.begin, columns);
    if (keys.begin == 0) {
      Real* first = row_of(buffers_.first_scores, row);
      for (std::int64_t key = begin; key < std::min(end, first_keys); ++key) first[key] = scores[key];
      begin = std::max<std::int64_t>(begin, 1);
    }
    if (begin < end) {
      absorb_scores(sums_[static_cast<std::size_t>(row)], scores, begin, end, columns, row_of(buffers_.accumulators, row), 2 * width());
    } else {
      std::fill_n(scores, columns, Real{0});
    }
  }
}

/// e' - c and S' of the keys other than key 0; zeros where there are none.
template <typename Real>
void BlockStream<Real>::others_of_row(const QueryBlock& block, std::int64_t row, Real* offset, Real* residual) {
  const double total = sums_[static_cast<std::size_t>(row)].total;
  const Real inverse_total = total > 0 ? static_cast<Real>(1 / total) : Real{0};
  if (block.two_pass) {
    two_pass_moments(row_of(buffers_.scores, row), row_of(buffers_.early_values, 0), query_of(block, row) + 1, width(), offset, residual);
  } else {
    moments_of_others(row_of(buffers_.accumulators, row), call_.shape.head_dim, inverse_total, offset, residual);
  }
}

template <typename Real>
void BlockStream<Real>::finish_row(const QueryBlock& block, std::int64_t row, ColumnSums& columns) {
  const AttentionShape& shape = call_.shape;
  const std::int64_t head = head_of(block, row), query = query_of(block, row), index = head * shape.length + query;
  const SoftmaxSums& others = sums_[static_cast<std::size_t>(row)];
  const Real* first_scores = row_of(buffers_.first_scores, row);
  if (others.total == 0 && first_scores[0] == -infinity) {
    ++columns.queries_without_keys;
    return;
  }
  const RowMass mass = row_mass(others, static_cast<double>(first_scores[0]));

  const auto dimension_row = [&](std::int64_t which) { return row_of(buffers_.dimensions, which); };
  Real *offset = dimension_row(0), *residual_others = dimension_row(1), *zero = dimension_row(2);
  others_of_row(block, row, offset, residual_others);
  std::fill_n(zero, width(), Real{0});
  const AttentionPlan::Workspace& shared = call_.workspace;
  // The two-pass form may not use the common centre, which knows later keys: its centre is the value of key 0.
  const DimensionRows<Real> rows{
      .centre = block.two_pass ? row_of(buffers_.early_values, 0) : shared.centre.template const_data_ptr<Real>() + block.kv_head * width(),
      .first_offset = block.two_pass ? zero : shared.packed.template const_data_ptr<Real>() + block.kv_head * shape.length * 2 * width(),
      .inverse_variance = shared.inverse_variance.template const_data_ptr<Real>() + block.kv_head * width(),
      .offset = offset,
      .residual_others = residual_others,
      .estimate = dimension_row(3),
      .residual = dimension_row(4),
      .precision = dimension_row(5)};
  QueryScalars scalars;
  scalars.entropy = mass.entropy;
  const GainPriors priors{
      .strength = call_.options.prior_strength, .variance = shape.prior_variance, .precision = call_.options.prior_precision};
  summarise_dimensions(rows, shape.head_dim, mass.split, priors, scalars);
  for (const QueryField& field : query_fields) {
    if (!field.wanted(call_.options.returned)) continue;
    (call_.result.*field.tensor).template mutable_data_ptr<Real>()[index] = static_cast<Real>(scalars.*field.scalar);
  }

  double keys_share = 1;  // 1 - p_s
  if (call_.sink_logit.defined()) {
    const double difference = call_.sink_logit.template const_data_ptr<double>()[head] - mass.log_total;
    keys_share = 1 / (1 + std::exp(difference));
    call_.result.sink_logit_mass.template mutable_data_ptr<Real>()[index] = static_cast<Real>(1 / (1 + std::exp(-difference)));
  }
  store_masses(head, query, first_scores, mass.log_total, keys_share, columns);
  store_row(rows.estimate, shape.head_dim, static_cast<Real>(keys_share), call_.result.output, index * shape.head_dim);
  if (!call_.options.returned.per_dimension) return;
  store_row(rows.residual, shape.head_dim, Real{1}, call_.result.residual_by_dimension, index * shape.head_dim);
  store_row(rows.precision, shape.head_dim, Real{1}, call_.result.observation_precision_by_dimension, index * shape.head_dim);
}

template <typename Real>
void BlockStream<Real>::store_masses(std::int64_t head, std::int64_t query, const Real* first_scores, double log_total, double keys_share,
                                     ColumnSums& columns) {
  Real* masses = call_.result.first_mass.template mutable_data_ptr<Real>() + (head * call_.shape.length + query) * first_keys;
  for (std::int64_t key = 0; key < first_keys; ++key) {
    const double mass = keys_share * std::exp(static_cast<double>(first_scores[key]) - log_total);
    masses[key] = static_cast<Real>(mass);
    if (query < key) continue;
    columns.mass[static_cast<std::size_t>(key)] += mass;
    ++columns.queries[static_cast<std::size_t>(key)];
  }
}

template class BlockStream<float>;
template class BlockStream<double>;

}  // namespace gainlens::kernels
