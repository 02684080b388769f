#include "kernels/streaming/streaming_block.h"

#include "kernels/query_fields.h"
#include "kernels/row_alignment.h"
#include "kernels/streaming/key_sums.h"

#include <algorithm>
#include <cmath>

namespace gainlens::kernels {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// -p ln p, and 0 at p = 0. `rest` is 1 - p: near p = 1 the logarithm of p itself would cancel.
double entropy_term(double p, double rest) {
  if (p > 0.5) return -p * std::log1p(-rest);
  return p > 0 ? -p * std::log(p) : 0;
}

/// The softmax of one query over all its visible keys: how the mass is split, the entropy and the total.
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
  RowMass row{.split = {.first = first_total / total,
                        .others = others_total / total,
                        .n_eff = 1,
                        .n_eff_others = std::numeric_limits<double>::quiet_NaN()},
              .entropy = 0,
              .log_total = maximum + std::log(total)};
  if (others.total == 0) return row;
  // Exactly, n_eff >= 1 and entropy >= 0. Rounding may break these bounds by a unit in the last place.
  MassSplit& split = row.split;
  split.n_eff_others = std::max(1.0, others.total * others.total / others.total_squares);
  split.n_eff = std::max(1.0, 1 / (split.first * split.first + split.others * split.others / split.n_eff_others));
  const double entropy_others = std::max(0.0, std::log(others.total) - others.weighted_score / others.total);
  row.entropy =
      split.others * entropy_others + entropy_term(split.others, split.first) + entropy_term(split.first, split.others);
  return row;
}

/// exp(difference), or 0 where that is small: a total may only be too low for a bound from above.
double lower_exp(double difference) {
  constexpr double negligible = -4;
  return difference > negligible ? std::exp(difference) : 0;
}

Summary summary_of(const ReturnedFields& returned) {
  if (returned.without_first_moments) return Summary::all;
  const bool more =
      returned.log_observation_precision || returned.kalman_gain_scaled || returned.without_first || returned.norms;
  return more ? Summary::all_but_without_first_moments : Summary::plain;
}

/// [head, query, ...] as rows [head x query].
template <typename Real>
Rows<Real> query_rows(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {tensor.mutable_data_ptr<Real>(), tensor.stride(1)};
}

/// Where the query_fields are written; null if they are not wanted.
template <typename Real>
std::array<Real*, query_fields.size()> scalar_targets(const QueryStatistics& result) {
  std::array<Real*, query_fields.size()> targets{};
  for (std::size_t i = 0; i < query_fields.size(); ++i) {
    const at::Tensor& tensor = result.*query_fields[i].tensor;
    if (tensor.defined()) targets[i] = tensor.mutable_data_ptr<Real>();
  }
  return targets;
}

}  // namespace

template <typename Real>
BlockStream<Real>::BlockStream(const StreamingCall<Real>& call, WorkerBuffers& buffers)
    : call_(call),
      shared_{.keys = rows_of<const Real>(call.workspace.keys),
              .values = rows_of<const Real>(call.workspace.values),
              .centre = rows_of<const Real>(call.workspace.centre),
              .unit = rows_of<const Real>(call.workspace.unit),
              .early_values = rows_of<const Real>(call.workspace.early_values),
              .first_value = rows_of<const Real>(call.workspace.first_value),
              .first_offset = rows_of<const Real>(call.workspace.first_offset),
              .inverse_variance = rows_of<const Real>(call.workspace.inverse_variance),
              .size = rows_of<const Real>(call.workspace.size)},
      results_{.scalars = scalar_targets<Real>(call.result),
               .output = query_rows<Real>(call.result.output),
               .first_mass = query_rows<Real>(call.result.first_mass),
               .sink_logit_mass = query_rows<Real>(call.result.sink_logit_mass),
               .first_weight = query_rows<Real>(call.result.first_weight),
               .residual = query_rows<Real>(call.result.residual_by_dimension),
               .precision = query_rows<Real>(call.result.observation_precision_by_dimension),
               .top_weight = query_rows<Real>(call.result.top_weight),
               .top_key = query_rows<std::int64_t>(call.result.top_key)},
      queries_(rows_of<Real>(buffers.queries)),
      scores_(rows_of<Real>(buffers.scores)),
      first_scores_(rows_of<Real>(buffers.first_scores)),
      dimensions_(rows_of<Real>(buffers.dimensions)),
      top_scores_(rows_of<Real>(buffers.top_scores)),
      top_keys_(rows_of<std::int64_t>(buffers.top_keys)),
      accumulators_(rows_of<double>(buffers.accumulators)),
      key_bias_(rows_of<const Real>(call.key_bias)),
      distance_bias_(rows_of<const Real>(call.distance_bias)),
      panel_kernels_(panel_kernels<Real>()),
      row_kernels_(row_kernels<Real>()),
      width_(panel_kernels_.padded(call.shape.value_dim)),
      summary_(summary_of(call.options.returned)),
      key_means_(call.options.returned.key_means),
      top_count_(call.options.returned.top_keys),
      buffers_(buffers) {
  std::fill_n(dimensions_.row(prior_precision_row), width_, static_cast<Real>(call.options.prior_precision));
}

template <typename Real>
void BlockStream<Real>::reserve_buffers(WorkerBuffers& buffers, const AttentionShape& shape, std::int64_t rows,
                                        std::int64_t tiles, const ReturnedFields& returned) {
  const at::ScalarType type = c10::CppTypeToScalarType<Real>::value;
  const PanelKernels<Real>& panel = panel_kernels<Real>();
  const std::int64_t strip = panel.rows, whole = rounded_up(rows, strip);
  const std::int64_t width = panel.padded(shape.value_dim);
  reserve(buffers.queries, {whole, padded<Real>(shape.key_dim)}, type);
  const KeyMeans key_means = returned.key_means;
  reserve(buffers.scores, {key_means == KeyMeans::all ? tiles * whole : whole, tile_keys}, type);
  reserve(buffers.accumulators, {whole, 2 * width}, at::kDouble);
  reserve(buffers.first_scores, {whole, first_keys}, type);
  reserve(buffers.dimensions, {dimension_rows, width}, type);
  if (returned.top_keys > 0) {
    reserve(buffers.top_scores, {whole, returned.top_keys}, type);
    reserve(buffers.top_keys, {whole, returned.top_keys}, at::kLong);
  }
  if (key_means == KeyMeans::none) return;
  reserve(buffers.key_tile, {tile_keys}, type);
  if (key_means == KeyMeans::all) {
    reserve(buffers.key_sums, {shape.heads, key_windows, shape.length}, at::kLong);
  } else {
    reserve(buffers.key_sums, {shape.heads, shape.length}, at::kDouble);
  }
  buffers.key_sums.zero_();
}

template <typename Real>
void BlockStream<Real>::run(const QueryBlock& block, ColumnSums* columns) {
  load_block(block);
  const KeyRange all = block_keys(call_.options, call_.shape, block);
  tile_ = scores_;
  tile_maxima_.clear();
  for (std::int64_t begin = all.begin - all.begin % tile_keys; begin < all.end; begin += tile_keys) {
    const KeyRange keys{begin, std::min(begin + tile_keys, all.end)};
    if (key_means_ == KeyMeans::all) tile_.data = scores_.row(std::ssize(tile_maxima_));
    score(block, keys);
    absorb(block, keys);
    if (key_means_ == KeyMeans::above) bound_keys(block, keys);
    if (key_means_ == KeyMeans::all) {
      for (const SoftmaxSums& sums : sums_) tile_maxima_.push_back(sums.maximum);
    }
    if (block.two_pass) continue;
    const Real* values = shared_.values.row(block.kv_head) + begin * 2 * width_;
    panel_kernels_.add_weighted_values(std::ssize(strips_), strips_.data(), 2 * width_ / panel_kernels_.columns,
                                       tile_keys, {tile_.row(0), tile_keys}, values,
                                       {accumulators_.row(0), 2 * width_});
  }
  for (std::int64_t row = 0; row < rows_; ++row) finish_row(block, row, columns[row % call_.shape.group]);
  if (key_means_ != KeyMeans::all) return;
  add_kept_weights(block, all);
  add_first_key(block);
}

template <typename Real>
template <typename Sum>
void BlockStream<Real>::for_parts(const QueryBlock& block, const Sum& sum) const {
  const auto begins = key_window_begins(call_.shape.length);
  for (std::int64_t head = 0; head < call_.shape.group; ++head) {
    for (std::size_t part = 0; part < begins.size(); ++part) {
      const std::int64_t begin = std::max(block.begin, begins[part]);
      const std::int64_t end = part + 1 < begins.size() ? std::min(block.end, begins[part + 1]) : block.end;
      if (begin < end) sum(head, begin, end, static_cast<std::int64_t>(part));
    }
  }
}

/// Adds to each key of the tile a bound of its sum over the block's queries from above: a weight over the sum so far is
/// at least the weight over the final sum.
template <typename Real>
void BlockStream<Real>::bound_keys(const QueryBlock& block, KeyRange keys) {
  const std::int64_t group = call_.shape.group, count = keys.end - keys.begin;
  Real* tile = buffers_.key_tile.template mutable_data_ptr<Real>();
  // Later queries see later keys, so the first and the last row tell whether all rows see the whole tile.
  const KeyRange first = visible_in_tile(block, 0, keys), last = visible_in_tile(block, rows_ - 1, keys);
  const bool whole = first.end == count && last.begin == 0 && !first.empty();
  for (std::int64_t head = 0; head < group; ++head) {
    const std::int64_t own_head = block.kv_head * group + head;
    const double sink =
        call_.sink_logit.defined() ? call_.sink_logit.template const_data_ptr<double>()[own_head] : -infinite;
    std::fill_n(tile, tile_keys, Real{0});
    for (std::int64_t row = head; row < rows_; row += group) {
      const KeyRange seen = whole ? KeyRange{0, count} : visible_in_tile(block, row, keys);
      const SoftmaxSums& sums = sums_[static_cast<std::size_t>(row)];
      if (seen.empty() || sums.total == 0) continue;
      const double total = sums.total + lower_exp(static_cast<double>(first_scores_.row(row)[0]) - sums.maximum) +
                           lower_exp(sink - sums.maximum);
      row_kernels_.add_scaled(tile_.row(row), seen.begin, seen.end, static_cast<Real>(1 / total), tile);
    }
    double* bounds = buffers_.key_sums.template mutable_data_ptr<double>() + own_head * call_.shape.length + keys.begin;
    for (std::int64_t key = 0; key < count; ++key) bounds[key] += static_cast<double>(tile[key]);
  }
}

/// Adds the weights of the block, now that the sums of its rows are known.
template <typename Real>
void BlockStream<Real>::add_kept_weights(const QueryBlock& block, KeyRange all) {
  const std::int64_t group = call_.shape.group, length = call_.shape.length;
  const double unit = key_sum_unit(length);
  const double* normaliser = call_.workspace.normaliser.template const_data_ptr<double>();
  Real* tile = buffers_.key_tile.template mutable_data_ptr<Real>();
  std::int64_t kept = 0;  // rows of the tiles before
  for (std::int64_t begin = all.begin - all.begin % tile_keys; begin < all.end; begin += tile_keys, kept += rows_) {
    const KeyRange keys{begin, std::min(begin + tile_keys, all.end)};
    for_parts(block, [&](std::int64_t head, std::int64_t first, std::int64_t last, std::int64_t part) {
      const std::int64_t own_head = block.kv_head * group + head;
      std::fill_n(tile, tile_keys, Real{0});
      for (std::int64_t query = first; query < last; ++query) {
        const std::int64_t row = (query - block.begin) * group + head;
        const KeyRange seen = visible_in_tile(block, row, keys);
        const double own = normaliser[own_head * length + query];
        const double maximum = tile_maxima_[static_cast<std::size_t>(kept + row)];
        if (seen.empty() || own == infinite || maximum == -infinite) continue;  // no weights
        const double factor = std::exp(maximum - own);
        row_kernels_.add_scaled(scores_.row(kept + row), seen.begin, seen.end, static_cast<Real>(factor), tile);
      }
      std::int64_t* sums = buffers_.key_sums.template mutable_data_ptr<std::int64_t>() +
                           (own_head * key_windows + part) * length + keys.begin;
      for (std::int64_t key = 0; key < keys.end - keys.begin; ++key)
        sums[key] += static_cast<std::int64_t>(static_cast<double>(tile[key]) * unit);
    });
  }
}

/// Key 0 is left out of the weights of a tile, and its score is kept.
template <typename Real>
void BlockStream<Real>::add_first_key(const QueryBlock& block) {
  const std::int64_t group = call_.shape.group, length = call_.shape.length;
  const double unit = key_sum_unit(length);
  const double* normaliser = call_.workspace.normaliser.template const_data_ptr<double>();
  for_parts(block, [&](std::int64_t head, std::int64_t first, std::int64_t last, std::int64_t part) {
    const std::int64_t own_head = block.kv_head * group + head;
    double sum = 0;
    for (std::int64_t query = first; query < last; ++query) {
      const auto score = static_cast<double>(first_scores_.row((query - block.begin) * group + head)[0]);
      if (score > -infinite) sum += std::exp(score - normaliser[own_head * length + query]);
    }
    buffers_.key_sums.template mutable_data_ptr<std::int64_t>()[(own_head * key_windows + part) * length] +=
        static_cast<std::int64_t>(sum * unit);
  });
}

template <typename Real>
void BlockStream<Real>::load_block(const QueryBlock& block) {
  rows_ = block.queries() * call_.shape.group;
  const std::int64_t strips = (rows_ + panel_kernels_.rows - 1) / panel_kernels_.rows,
                     whole = strips * panel_kernels_.rows;
  sums_.assign(static_cast<std::size_t>(rows_), SoftmaxSums{});
  strips_.resize(static_cast<std::size_t>(strips));
  begun_.assign(static_cast<std::size_t>(strips), false);
  const std::int64_t stride = queries_.stride;
  const Real* query = call_.query.template const_data_ptr<Real>();
  for (std::int64_t row = 0; row < rows_; ++row) {
    const Real* source =
        query + head_of(block, row) * call_.query.stride(0) + query_of(block, row) * call_.query.stride(1);
    panel_kernels_.load_query(source, call_.shape.key_dim, static_cast<Real>(call_.shape.scale), queries_.row(row),
                              query_extrema_);
  }
  // Rows that fill up the last strip: zero queries have zero scores, which are never turned into weights.
  std::fill_n(queries_.row(rows_), (whole - rows_) * stride, Real{0});
  std::fill_n(first_scores_.row(0), rows_ * first_keys, -std::numeric_limits<Real>::infinity());
  for (std::int64_t row = 0; top_count_ > 0 && row < rows_; ++row) top_scores(row).clear();
}

/// Computes the scores of the tile into `scores`: scaled, capped and biased, not yet masked. Sets the ranges of the
/// strips.
template <typename Real>
void BlockStream<Real>::score(const QueryBlock& block, KeyRange keys) {
  for (std::size_t strip = 0; strip < strips_.size(); ++strip) {
    const std::int64_t first = static_cast<std::int64_t>(strip) * panel_kernels_.rows,
                       last = std::min(first + panel_kernels_.rows, rows_) - 1;
    const KeyRange from = visible_keys(call_.options, call_.shape.length, query_of(block, first));
    const KeyRange to = visible_keys(call_.options, call_.shape.length, query_of(block, last));
    StripRange& range = strips_[strip];
    range = {std::max(from.begin, keys.begin) - keys.begin, std::min(to.end, keys.end) - keys.begin};
    if (range.begin >= range.end || begun_[strip]) continue;
    begun_[strip] = range.first = true;
  }
  const Real* panels = shared_.keys.row(block.kv_head) + keys.begin * call_.shape.key_dim;
  panel_kernels_.score_tile(std::ssize(strips_), strips_.data(), call_.shape.key_dim,
                            {queries_.row(0), queries_.stride}, panels, {tile_.row(0), tile_keys});
  const bool plain = call_.options.soft_cap == 0 && !call_.key_bias.defined() && !call_.distance_bias.defined();
  if (plain) return;

  const auto bias_of = [&](const Rows<const Real>& bias, const at::Tensor& tensor, std::int64_t row) {
    return bias.row(tensor.size(0) > 1 ? head_of(block, row) : 0);
  };
  for (std::int64_t row = 0; row < rows_; ++row) {
    Real* scores = tile_.row(row);
    const StripRange range = strips_[static_cast<std::size_t>(row / panel_kernels_.rows)];
    if (range.begin >= range.end) continue;
    if (call_.options.soft_cap > 0)
      row_kernels_.cap_scores(scores, range.begin, range.end, static_cast<Real>(call_.options.soft_cap));
    if (call_.key_bias.defined()) {
      const Real* bias = bias_of(key_bias_, call_.key_bias, row) + keys.begin;
      for (std::int64_t i = range.begin; i < range.end; ++i) scores[i] += bias[i];
    }
    if (call_.distance_bias.defined()) {
      const Real* bias = bias_of(distance_bias_, call_.distance_bias, row) + call_.shape.length - 1 -
                         query_of(block, row) + keys.begin;
      for (std::int64_t i = range.begin; i < range.end; ++i) scores[i] += bias[i];
    }
  }
}

/// Masks the tile, adds its rows to their sums and leaves the weights in `scores`. Key 0 is left out of the sums, and
/// its score is kept.
template <typename Real>
void BlockStream<Real>::absorb(const QueryBlock& block, KeyRange keys) {
  for (std::int64_t row = 0; row < rows_; ++row) {
    const StripRange strip = strips_[static_cast<std::size_t>(row / panel_kernels_.rows)];
    if (strip.begin >= strip.end) continue;
    Real* scores = tile_.row(row);
    auto [begin, end] = visible_in_tile(block, row, keys);
    if (top_count_ > 0) top_scores(row).add(scores, begin, end, keys.begin);
    if (keys.begin == 0) {
      Real* first = first_scores_.row(row);
      for (std::int64_t key = begin; key < std::min(end, first_keys); ++key) first[key] = scores[key];
      begin = std::max<std::int64_t>(begin, 1);
    }
    if (begin < end) {
      row_kernels_.absorb_scores(sums_[static_cast<std::size_t>(row)], scores, begin, end, strip.begin, strip.end,
                                 accumulators_.row(row), 2 * width_);
    } else {
      std::fill(scores + strip.begin, scores + strip.end, Real{0});
    }
  }
}

template <typename Real>
const Real* BlockStream<Real>::prior_precision(std::int64_t head, std::int64_t query) {
  Real* row = dimensions_.row(prior_precision_row);
  if (call_.prior_precision.defined()) {
    const at::Tensor& precision = call_.prior_precision;
    const Real* source = precision.const_data_ptr<Real>() + head * precision.stride(0) + query * precision.stride(1);
    for (std::int64_t i = 0; i < call_.shape.value_dim; ++i) row[i] = source[i * precision.stride(2)];
  }
  return row;
}

/// Computes the moments of the keys other than key 0. Returns these rows together with the other rows of one query.
template <typename Real>
DimensionRows<Real> BlockStream<Real>::dimensions_of_row(const QueryBlock& block, std::int64_t row) {
  const std::int64_t query = query_of(block, row);
  Real *offset = dimensions_.row(offset_row), *residual_others = dimensions_.row(residual_others_row),
       *zero = dimensions_.row(zero_row);
  if (block.two_pass) {
    const std::int64_t begin = visible_keys(call_.options, call_.shape.length, query).begin;
    row_kernels_.two_pass_moments(tile_.row(row) + begin, shared_.early_values.row(block.kv_head) + begin * width_,
                                  query + 1 - begin, width_, offset, residual_others);
    std::fill_n(zero, width_, Real{0});
  } else {
    row_kernels_.moments_from_sums(accumulators_.row(row), width_, sums_[static_cast<std::size_t>(row)].total, offset,
                                   residual_others);
  }
  // The two-pass form must not use the common centre, which depends on later keys. Its centre is the value of key 0.
  return {.centre = (block.two_pass ? shared_.first_value : shared_.centre).row(block.kv_head),
          .unit = shared_.unit.row(block.kv_head),
          .first_offset = block.two_pass ? zero : shared_.first_offset.row(block.kv_head),
          .inverse_variance = shared_.inverse_variance.row(block.kv_head),
          .prior_precision = prior_precision(head_of(block, row), query),
          .offset = offset,
          .residual_others = residual_others,
          .size = *shared_.size.row(block.kv_head),
          .estimate = dimensions_.row(estimate_row),
          .residual = dimensions_.row(residual_row),
          .precision = dimensions_.row(precision_row)};
}

template <typename Real>
void BlockStream<Real>::finish_row(const QueryBlock& block, std::int64_t row, ColumnSums& columns) {
  const AttentionShape& shape = call_.shape;
  const std::int64_t head = head_of(block, row), query = query_of(block, row), index = head * shape.length + query;
  const SoftmaxSums& others = sums_[static_cast<std::size_t>(row)];
  const Real* first_scores = first_scores_.row(row);
  if (others.total == 0 && first_scores[0] == -infinite) {
    ++columns.queries_without_keys;
    if (key_means_ != KeyMeans::none) call_.workspace.normaliser.template mutable_data_ptr<double>()[index] = infinite;
    if (results_.output.data != nullptr) std::fill_n(results_.output.row(index), shape.value_dim, Real{0});
    return;
  }
  const RowMass mass = row_mass(others, static_cast<double>(first_scores[0]));
  const DimensionRows<Real> rows = dimensions_of_row(block, row);
  QueryScalars scalars;
  scalars.entropy = mass.entropy;
  const GainPriors priors{.strength = call_.options.prior_strength, .variance = shape.prior_variance};
  row_kernels_.summarise_dimensions(summary_, rows, shape.value_dim, mass.split, priors, scalars);
  for (std::size_t i = 0; i < query_fields.size(); ++i) {
    if (results_.scalars[i] != nullptr) results_.scalars[i][index] = static_cast<Real>(scalars.*query_fields[i].scalar);
  }

  double keys_share = 1;  // 1 - p_s
  if (call_.sink_logit.defined()) {
    const double difference = call_.sink_logit.template const_data_ptr<double>()[head] - mass.log_total;
    keys_share = 1 / (1 + std::exp(difference));
    *results_.sink_logit_mass.row(index) = static_cast<Real>(1 / (1 + std::exp(-difference)));
    *results_.first_weight.row(index) = static_cast<Real>(mass.split.first);
  }
  if (key_means_ != KeyMeans::none) {
    call_.workspace.normaliser.template mutable_data_ptr<double>()[index] = mass.log_total - std::log(keys_share);
  }
  store_masses(head, query, first_scores, mass.log_total, keys_share, columns);
  if (top_count_ > 0) store_top_keys(row, index, mass.log_total, keys_share);
  const auto store = [&](const Real* values, const Rows<Real>& rows_of_queries, Real factor) {
    Real* target = rows_of_queries.row(index);
    for (std::int64_t i = 0; i < shape.value_dim; ++i) target[i] = values[i] * factor;
  };
  if (call_.options.returned.output) store(rows.estimate, results_.output, static_cast<Real>(keys_share));
  if (!call_.options.returned.per_dimension) return;
  store(rows.residual, results_.residual, Real{1});
  store(rows.precision, results_.precision, Real{1});
}

/// @param index  of the query among those of all heads
template <typename Real>
void BlockStream<Real>::store_top_keys(std::int64_t row, std::int64_t index, double log_total, double keys_share) {
  const TopScores<Real> top = top_scores(row);
  for (std::int64_t rank = 0; rank < top_count_ && top.keys[rank] >= 0; ++rank) {
    results_.top_key.row(index)[rank] = top.keys[rank];
    results_.top_weight.row(index)[rank] =
        static_cast<Real>(keys_share * std::exp(static_cast<double>(top.scores[rank]) - log_total));
  }
}

template <typename Real>
void BlockStream<Real>::store_masses(std::int64_t head, std::int64_t query, const Real* first_scores, double log_total,
                                     double keys_share, ColumnSums& columns) {
  const std::int64_t keys = call_.options.returned.first_masses;
  if (keys == 0) return;
  std::array<double, first_keys> found;
  if (keys == 1) {
    found[0] = keys_share * std::exp(static_cast<double>(first_scores[0]) - log_total);
  } else {
    row_kernels_.masses_of_first(first_scores, log_total, keys_share, found.data());
  }
  Real* masses = results_.first_mass.row(head * call_.shape.length + query);
  for (std::size_t key = 0; key < static_cast<std::size_t>(keys); ++key) {
    masses[key] = static_cast<Real>(found[key]);
    if (query < static_cast<std::int64_t>(key)) continue;
    columns.mass[key] += found[key];
    ++columns.queries[key];
  }
}

template class BlockStream<float>;
template class BlockStream<double>;

}  // namespace gainlens::kernels
