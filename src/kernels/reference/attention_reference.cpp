// The oracle: attention and its statistics by their definitions, one query at a time.

#include "core/check.h"
#include "kernels/attention_inputs.h"
#include "kernels/attention_sequences.h"
#include "kernels/key_means.h"
#include "kernels/query_fields.h"
#include "kernels/reference/weighted_moments.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace gainlens::kernels {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The inputs in double, with every value dimension contiguous.
struct Inputs {
  AttentionOptions options;
  AttentionShape shape;
  at::Tensor query, key;               // [head or kv_head, position, key_dim]
  at::Tensor columns;                  // [kv_head, value_dim, position]: the values
  at::Tensor key_bias, distance_bias;  // [head or 1, position] or undefined
  at::Tensor prior_precision;          // [head, query, value_dim] or undefined
  at::Tensor value_variance;           // [kv_head, value_dim]
  at::Tensor key_sums;                 // [head, window, key] sums of p over the queries so far; undefined: not wanted

  std::span<const double> column(std::int64_t kv_head, std::int64_t dimension) const {
    return {columns.const_data_ptr<double>() + (kv_head * shape.value_dim + dimension) * shape.length,
            static_cast<std::size_t>(shape.length)};
  }
};

/// The value of `bias` [head or 1, position]; 0 if it is undefined.
double bias_at(const at::Tensor& bias, std::int64_t head, std::int64_t position) {
  if (!bias.defined()) return 0;
  return bias.const_data_ptr<double>()[(bias.size(0) > 1 ? head * bias.size(1) : 0) + position];
}

/// Scores of the visible keys, -inf if a bias hides the key.
std::vector<double> visible_scores(const Inputs& in, std::int64_t head, std::int64_t query, KeyRange visible) {
  const std::int64_t dims = in.shape.key_dim;
  const double* q = in.query.const_data_ptr<double>() + (head * in.shape.length + query) * dims;
  const double* keys = in.key.const_data_ptr<double>() + head / in.shape.group * in.shape.length * dims;
  std::vector<double> scores;
  for (std::int64_t key = visible.begin; key < visible.end; ++key) {
    double score = 0;
    for (std::int64_t i = 0; i < dims; ++i) score += q[i] * keys[key * dims + i];
    score *= in.shape.scale;
    if (in.options.soft_cap > 0) score = in.options.soft_cap * std::tanh(score / in.options.soft_cap);
    scores.push_back(score + bias_at(in.key_bias, head, key) + bias_at(in.distance_bias, head, std::abs(query - key)));
  }
  return scores;
}

/// Softmax weights of some keys. Empty if no score is finite.
struct Weights {
  std::vector<double> p;
  double entropy = 0;            ///< nats
  double log_total = -infinity;  ///< ln sum exp(s)
};

Weights softmax(std::span<const double> scores) {
  Weights weights;
  const auto largest = std::max_element(scores.begin(), scores.end());
  if (largest == scores.end() || *largest == -infinity) return weights;
  double others = 0;  // without the largest, whose term is 1: so ln(1 + others) keeps its digits
  for (auto score = scores.begin(); score != scores.end(); ++score)
    others += score == largest ? 0 : std::exp(*score - *largest);
  weights.entropy = std::log1p(others);
  for (const double score : scores) {
    const double p = std::exp(score - *largest) / (1 + others);
    weights.p.push_back(p);
    weights.entropy -= p > 0 ? p * (score - *largest) : 0;
  }
  weights.log_total = *largest + std::log1p(others);
  return weights;
}

/// What the estimators take of the values of one dimension, in the square of their unit.
struct Spread {
  double residual;          ///< S = sum p (v - e)^2
  double weighted_squares;  ///< sum p^2 (v - e)^2
  double visible_squares;   ///< sum (v - m)^2 over the visible values, m their mean
};

/// n_eff, and e and the spread of each dimension, of one query over some of the keys.
struct Moments {
  double n_eff = 0;
  double visible = 0;        ///< number of keys
  std::vector<double> mean;  // [value_dim]
  std::vector<Spread> spread;
};

/// @param scores  of the keys that `weights` belong to; -inf: not visible
Moments moments(const Inputs& in, std::int64_t kv_head, std::span<const double> weights, std::span<const double> scores,
                std::int64_t first_key) {
  Moments result;
  std::vector<double> visible, squared;
  for (const double score : scores) visible.push_back(score > -infinity ? 1 : 0);
  for (const double p : weights) squared.push_back(p * p);
  result.visible = std::accumulate(visible.begin(), visible.end(), 0.0);
  /// sum c (v - centre)^2
  const auto squares = [](std::span<const double> c, std::span<const double> values, double centre) {
    double sum = 0;
    for (std::size_t key = 0; key < c.size(); ++key) sum += c[key] * (values[key] - centre) * (values[key] - centre);
    return sum;
  };
  for (std::int64_t i = 0; i < in.shape.value_dim; ++i) {
    const auto values = in.column(kv_head, i).subspan(static_cast<std::size_t>(first_key), weights.size());
    const WeightedMoments m = weighted_moments(weights, values);
    result.n_eff = m.effective_sample_size;
    result.mean.push_back(m.mean);
    Spread& spread = result.spread.emplace_back(Spread{m.residual, 0, 0});
    if (in.options.estimator.name == Estimator::reml) continue;
    spread.weighted_squares = squares(squared, values, m.mean);
    spread.visible_squares = squares(visible, values, weighted_moments(visible, values).mean);
  }
  return result;
}

/// lambda_obs = 1 / V, without bounds; NaN where V is not defined. docs/estimators.md.
double unbounded_precision(const AttentionOptions& options, const Moments& m, const Spread& spread,
                           double prior_variance) {
  const double n = m.n_eff, nu = options.prior_strength, prior = nu * prior_variance;
  const auto ratio = [](double above, double below) {
    return above > 0 ? above / below : std::numeric_limits<double>::quiet_NaN();
  };
  switch (options.estimator.name) {
    case Estimator::reml:  // the paper, eq. (6)
      return (n + nu) / (spread.residual + prior);
    case Estimator::reml_naive:
      return ratio(n - 1, spread.residual);
    case Estimator::reml_conjugate:
      return ratio((n - 1 + nu) * n, n * spread.residual + prior);
    case Estimator::sandwich:
      return 1 / spread.weighted_squares;
    case Estimator::kish:
      return ratio((m.visible - 1 + nu) * n, spread.visible_squares + prior);
    case Estimator::delta_weight_free: {
      const double noise = options.estimator.score_noise * options.estimator.score_noise;
      return 1 / ((spread.residual + prior) / (n + nu) + noise * spread.weighted_squares);
    }
    case Estimator::delta:
      break;
  }
  throw_internal_error(__FILE__, __LINE__, "an estimator that was not refused");
}

/// lambda_obs / (lambda + lambda_obs); 1 if lambda_obs is infinite, as it is for S = 0 and nu = 0.
double kalman_gain(double prior_precision, double precision) {
  return std::isinf(precision) ? 1 : precision / (prior_precision + precision);
}

/// lambda of the residual stream at one query, per dimension.
std::vector<double> prior_precision(const Inputs& in, std::int64_t head, std::int64_t query) {
  const auto dims = static_cast<std::size_t>(in.shape.value_dim);
  if (!in.prior_precision.defined()) return std::vector<double>(dims, in.options.prior_precision);
  const double* row =
      in.prior_precision.const_data_ptr<double>() + (head * in.shape.length + query) * in.shape.value_dim;
  return {row, row + dims};
}

/// lambda_obs; NaN where V is not defined, or too small to be given.
double observation_precision(const AttentionOptions& options, const Moments& m, const Spread& spread,
                             double prior_variance) {
  const double precision = unbounded_precision(options, m, spread, prior_variance);
  const bool too_small = has_no_floor(options.estimator.name) && precision > 1 / min_variance;
  return too_small ? std::numeric_limits<double>::quiet_NaN() : precision;
}

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double mean_residual(const Moments& m) {
  double sum = 0;
  for (const Spread& spread : m.spread) sum += spread.residual;
  return sum / static_cast<double>(m.spread.size());
}

double norm_of(std::span<const double> vector) {
  double squares = 0;
  for (const double element : vector) squares += element * element;
  return std::sqrt(squares);
}

void fill_plain(const Inputs& in, std::int64_t kv_head, std::span<const double> lambda, const Moments& m,
                QueryScalars& out) {
  const double* variance = in.value_variance.const_data_ptr<double>() + kv_head * in.shape.value_dim;
  std::vector<double> precision, log_precision, gain, gain_scaled, gained;
  for (std::size_t i = 0; i < m.mean.size(); ++i) {
    const Spread& spread = m.spread[i];
    precision.push_back(observation_precision(in.options, m, spread, in.shape.prior_variance));
    log_precision.push_back(std::log(precision.back()));
    gain.push_back(kalman_gain(lambda[i], unbounded_precision(in.options, m, spread, in.shape.prior_variance)));
    gained.push_back(gain.back() * m.mean[i]);
    const auto scaled = [&](double squares) { return variance[i] > 0 ? squares / variance[i] : 0; };
    const Spread relative{scaled(spread.residual), scaled(spread.weighted_squares), scaled(spread.visible_squares)};
    gain_scaled.push_back(kalman_gain(lambda[i], unbounded_precision(in.options, m, relative, 1)));
  }
  out.n_eff = m.n_eff;
  out.residual = mean_residual(m);
  out.observation_precision = mean_of(precision);
  out.log_observation_precision = mean_of(log_precision);
  out.kalman_gain = mean_of(gain);
  out.kalman_gain_scaled = mean_of(gain_scaled);
  out.estimate_norm = norm_of(m.mean);
  out.gained_estimate_norm = norm_of(gained);
}

void fill_without_first(const Inputs& in, std::span<const double> lambda, const Moments& m, QueryScalars& out) {
  std::vector<double> precision, gain;
  for (std::size_t i = 0; i < m.mean.size(); ++i) {
    precision.push_back(observation_precision(in.options, m, m.spread[i], in.shape.prior_variance));
    gain.push_back(kalman_gain(lambda[i], unbounded_precision(in.options, m, m.spread[i], in.shape.prior_variance)));
  }
  out.without_first_n_eff = m.n_eff;
  out.without_first_residual = mean_residual(m);
  out.without_first_observation_precision = mean_of(precision);
  out.without_first_kalman_gain = mean_of(gain);
  out.without_first_norm = norm_of(m.mean);
}

/// Stores the results of one query that are not means over dimensions: output, masses, fields by dimension.
void store_query(const Inputs& in, std::int64_t head, std::int64_t query, std::int64_t first_visible, const Moments& m,
                 std::span<const double> scores, const Weights& weights, QueryStatistics& out) {
  const std::int64_t row = head * in.shape.length + query;
  double keys_share = 1;  // 1 - p_s, not computed as that difference: if p_s is near 1 it would have no digits
  if (in.options.sink_logit.defined()) {
    const auto sink = in.options.sink_logit[head].item<double>();
    keys_share = 1 / (1 + std::exp(sink - weights.log_total));
    out.sink_logit_mass.mutable_data_ptr<double>()[row] = 1 / (1 + std::exp(weights.log_total - sink));
    out.first_weight.mutable_data_ptr<double>()[row] = first_visible == 0 ? weights.p[0] : 0;
  }
  const std::int64_t masses = in.options.returned.first_masses;
  for (std::int64_t key = 0; key < masses; ++key) {
    const std::int64_t index = key - first_visible;
    const bool seen = index >= 0 && index < static_cast<std::int64_t>(weights.p.size());
    out.first_mass.mutable_data_ptr<double>()[row * masses + key] =
        seen ? keys_share * weights.p[static_cast<std::size_t>(index)] : 0;
  }
  if (out.top_key.defined()) {
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return scores[i]; });
    const std::int64_t kept = out.top_key.size(2);
    for (std::size_t rank = 0; rank < std::min(order.size(), static_cast<std::size_t>(kept)); ++rank) {
      if (scores[order[rank]] == -infinity) break;
      const std::size_t at = static_cast<std::size_t>(row * kept) + rank;
      out.top_key.mutable_data_ptr<std::int64_t>()[at] = first_visible + static_cast<std::int64_t>(order[rank]);
      out.top_weight.mutable_data_ptr<double>()[at] = keys_share * weights.p[order[rank]];
    }
  }
  if (in.key_sums.defined()) {
    const auto begins = key_window_begins(in.shape.length);
    auto sums = in.key_sums.accessor<double, 3>()[head];
    for (std::int64_t window = 0; window < key_windows; ++window) {
      if (query < begins[static_cast<std::size_t>(window)]) break;
      for (std::size_t i = 0; i < weights.p.size(); ++i)
        sums[window][first_visible + static_cast<std::int64_t>(i)] += keys_share * weights.p[i];
    }
  }
  for (std::size_t i = 0; i < m.mean.size(); ++i) {
    const std::size_t at = static_cast<std::size_t>(row) * m.mean.size() + i;
    if (out.output.defined()) out.output.mutable_data_ptr<double>()[at] = keys_share * m.mean[i];
    if (!in.options.returned.per_dimension) continue;
    out.residual_by_dimension.mutable_data_ptr<double>()[at] = m.spread[i].residual;
    out.observation_precision_by_dimension.mutable_data_ptr<double>()[at] =
        observation_precision(in.options, m, m.spread[i], in.shape.prior_variance);
  }
}

void reference_query(const Inputs& in, std::int64_t head, std::int64_t query, QueryStatistics& out) {
  const KeyRange visible = visible_keys(in.options, in.shape.length, query);
  const std::vector<double> scores = visible_scores(in, head, query, visible);
  const Weights weights = softmax(scores);
  if (weights.p.empty()) {
    ++out.queries_without_keys;
    return;
  }
  const std::int64_t kv_head = head / in.shape.group;
  const Moments all = moments(in, kv_head, weights.p, scores, visible.begin);
  store_query(in, head, query, visible.begin, all, scores, weights, out);

  QueryScalars scalars;
  scalars.entropy = weights.entropy;
  const std::vector<double> lambda = prior_precision(in, head, query);
  fill_plain(in, kv_head, lambda, all, scalars);
  const std::size_t skipped = visible.begin == 0 ? 1 : 0;
  const auto other_scores = std::span(scores).subspan(skipped);
  const Weights others = softmax(other_scores);
  if (!others.p.empty()) {
    fill_without_first(in, lambda,
                       moments(in, kv_head, others.p, other_scores, visible.begin + static_cast<std::int64_t>(skipped)),
                       scalars);
  }
  for (const QueryField& field : query_fields) {
    if (!field.wanted(in.options.returned)) continue;
    (out.*field.tensor).mutable_data_ptr<double>()[head * in.shape.length + query] = scalars.*field.scalar;
  }
}

/// Mean of first_mass over the queries i >= m that see a key.
void fill_column_means(const AttentionShape& shape, QueryStatistics& out) {
  if (!out.first_mass.defined()) return;
  const auto mass = out.first_mass.accessor<double, 3>();
  auto mean = out.column_mean.accessor<double, 2>();
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    for (std::int64_t key = 0; key < mean.size(1); ++key) {
      double sum = 0;
      std::int64_t count = 0;
      for (std::int64_t query = key; query < shape.length; ++query) {
        if (std::isnan(mass[head][query][key])) continue;
        sum += mass[head][query][key];
        ++count;
      }
      mean[head][key] = count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
    }
  }
}

QueryStatistics reference_sequence(const AttentionOptions& options, const AttentionShape& shape,
                                   const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  QueryStatistics out = allocate_statistics(options, shape, at::kDouble, query);
  Inputs in{.options = options,
            .shape = shape,
            .query = query.contiguous(),
            .key = key.contiguous(),
            .columns = value.transpose(1, 2).contiguous(),
            .key_bias = bias_rows(options.key_bias, at::kDouble),
            .distance_bias = bias_rows(options.distance_bias, at::kDouble),
            .prior_precision = precision_rows(options, shape, at::kDouble),
            .value_variance = out.value_variance,
            .key_sums = out.key_mean.defined() ? at::zeros({shape.heads, key_windows, shape.length}, at::kDouble)
                                               : at::Tensor()};
  if (in.prior_precision.defined()) in.prior_precision = in.prior_precision.contiguous();
  const std::vector<double> equal_weights(static_cast<std::size_t>(shape.length), 1.0);
  for (std::int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
    for (std::int64_t i = 0; i < shape.value_dim; ++i) {
      out.value_variance[kv_head][i] = weighted_moments(equal_weights, in.column(kv_head, i)).residual;
    }
  }
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    for (std::int64_t position = options.first_query; position < shape.length; ++position)
      reference_query(in, head, position, out);
  }
  fill_column_means(shape, out);
  if (in.key_sums.defined())
    finish_key_means(options.returned, in.key_sums, queries_of_keys(options, shape, at::kCPU), out);
  return out;
}

}  // namespace

QueryStatistics attention_statistics_reference(const AttentionOptions& options, const at::Tensor& query,
                                               const at::Tensor& key, const at::Tensor& value) {
  constexpr const char* where = "attention_statistics_reference";
  const AttentionShape shape = checked_shape(where, options, query, key, value);
  CHECK(query.device().is_cpu(), "{}: the inputs are on {}; must be on the CPU", where, query.device().str());
  const at::Tensor queries = query.to(at::kDouble), keys = key.to(at::kDouble), values = value.to(at::kDouble);
  check_magnitudes(where, at::kDouble, shape, queries, keys, values);
  return over_sequences(options, queries, keys, values, reference_sequence);
}

}  // namespace gainlens::kernels
