#include "kernels/attention_inputs.h"

#include "core/check.h"
#include "core/checked.h"
#include "kernels/key_means.h"
#include "kernels/query_fields.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace gainlens::kernels {
namespace {

std::string shape_text(const at::Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.sizes(), ", "));
}

/// Priors and soft caps beyond these are infinite or zero in float32, and some statistics would be NaN.
constexpr double smallest_cap = 1e-30, largest_option = 1e30;
constexpr double smallest_key_mean = 1e-4;  // far above what rounding adds to a mean
constexpr double max_score_noise = 1e6;     // its square stays far from the bounds of float64

void check_prior(const char* where, const char* name, double prior) {
  CHECK(prior >= 0 && prior <= largest_option, "{}: {} {}; must be between 0 and {}", where, name, prior,
        largest_option);
}

void check_estimator(const char* where, const ChosenEstimator& estimator) {
  CHECK(estimator.name != Estimator::delta,
        "{}: the estimator is delta, which needs the noise of tokens and the projections; take delta_weight_free",
        where);
  CHECK(estimator.name == Estimator::delta_weight_free || estimator.score_noise == 0,
        "{}: score_noise is {}, which is of delta_weight_free alone; the estimator is {}", where, estimator.score_noise,
        name_of(estimator.name));
  CHECK(estimator.score_noise >= 0 && estimator.score_noise <= max_score_noise,
        "{}: score_noise is {}; must be between 0 and {}", where, estimator.score_noise, max_score_noise);
}

void check_options(const char* where, const AttentionOptions& options, double prior_variance) {
  CHECK(std::isfinite(options.scale), "{}: scale {}; must be finite (0 means 1/sqrt(key_dim))", where, options.scale);
  CHECK(!options.window || *options.window >= 1, "{}: window {}; must be at least 1 (the query itself), or absent",
        where, options.window.value_or(0));
  const double cap = options.soft_cap;
  CHECK(cap == 0 || (cap >= smallest_cap && cap <= largest_option),
        "{}: soft_cap {}; must be between {} and {}, or 0 for none", where, cap, smallest_cap, largest_option);
  check_prior(where, "prior_strength", options.prior_strength);
  check_prior(where, "prior_variance", prior_variance);
  check_prior(where, "prior_strength times prior_variance", options.prior_strength * prior_variance);
  check_prior(where, "prior_precision", options.prior_precision);
  check_estimator(where, options.estimator);
  CHECK(options.returned.first_masses >= 0 && options.returned.first_masses <= first_keys,
        "{}: first_masses {}; must be between 0 and {}", where, options.returned.first_masses, first_keys);
  CHECK(options.returned.top_keys >= 0 && options.returned.top_keys <= max_top_keys,
        "{}: top_keys {}; must be between 0 and {}", where, options.returned.top_keys, max_top_keys);
  const double least = options.returned.min_key_mean;
  CHECK(least >= smallest_key_mean && least <= 1, "{}: least_key_mean {}; must be between {} and 1", where, least,
        smallest_key_mean);
}

void check_sequences(const char* where, const AttentionOptions& options, std::int64_t length) {
  CHECK(options.first_query >= 0 && options.first_query < length, "{}: first_query {}; must be between 0 and {}", where,
        options.first_query, length - 1);
  CHECK(options.first_query == 0 || options.sequences.empty(),
        "{}: first_query is {} and `sequences` are given; give only one of the two", where, options.first_query);
  std::int64_t free = 0;
  for (const Sequence& sequence : options.sequences) {
    CHECK(sequence.begin >= free && sequence.begin < sequence.end && sequence.end <= length,
          "{}: sequence [{}, {}) after position {} of {}; a sequence must not be empty, must not overlap the "
          "one before it, and must end within the text",
          where, sequence.begin, sequence.end, free, length);
    free = sequence.end;
  }
}

void check_tensor(const char* where, const char* name, const at::Tensor& tensor, const at::Tensor& query) {
  CHECK(tensor.defined(), "{}: {} is undefined; must be a tensor", where, name);
  CHECK(tensor.dim() == 3, "{}: {} has shape {}; must be [head, position, dimension]", where, name, shape_text(tensor));
  const at::ScalarType type = tensor.scalar_type();
  CHECK(type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16,
        "{}: {} has dtype {}; must be float32, float64, float16 or bfloat16", where, name, at::toString(type));
  CHECK(tensor.scalar_type() == query.scalar_type(), "{}: {} has dtype {}, query {}; must be the same", where, name,
        at::toString(tensor.scalar_type()), at::toString(query.scalar_type()));
  CHECK(tensor.device() == query.device(), "{}: {} is on {}, query on {}; must be the same", where, name,
        tensor.device().str(), query.device().str());
  CHECK(tensor.numel() > 0, "{}: {} has shape {}; no size may be 0", where, name, shape_text(tensor));
}

/// Checks that a tensor of the options is of floating point and on the device of the inputs.
void check_option_tensor(const char* where, const char* name, const at::Tensor& tensor, const at::Tensor& query) {
  CHECK(at::isFloatingType(tensor.scalar_type()), "{}: {} has dtype {}; must be a floating point tensor", where, name,
        at::toString(tensor.scalar_type()));
  CHECK(tensor.device() == query.device(), "{}: {} is on {}, query on {}; must be the same", where, name,
        tensor.device().str(), query.device().str());
}

/// Checks a [position] or [head, position] tensor that is added to scores.
void check_bias(const char* where, const char* name, const at::Tensor& bias, const AttentionShape& shape,
                const at::Tensor& query) {
  if (!bias.defined()) return;
  const bool shared = bias.dim() == 1 && bias.size(0) == shape.length;
  const bool per_head = bias.dim() == 2 && bias.size(0) == shape.heads && bias.size(1) == shape.length;
  CHECK(shared || per_head, "{}: {} has shape {}; must be [{}] or [{}, {}]", where, name, shape_text(bias),
        shape.length, shape.heads, shape.length);
  check_option_tensor(where, name, bias, query);
  CHECK(bias.lt(1e30).all().item<bool>() && at::logical_or(bias.gt(-1e30), at::isneginf(bias)).all().item<bool>(),
        "{}: {} holds NaN, +inf or a magnitude of 1e30 or more; must be finite, or -inf to hide a key", where, name);
}

void check_sink_logit(const char* where, const at::Tensor& sink, const AttentionShape& shape, const at::Tensor& query) {
  if (!sink.defined()) return;
  CHECK(sink.dim() == 1 && sink.size(0) == shape.heads, "{}: sink_logit has shape {}; must be [{}]", where,
        shape_text(sink), shape.heads);
  check_option_tensor(where, "sink_logit", sink, query);
  CHECK(at::isfinite(sink).all().item<bool>(), "{}: sink_logit holds NaN or infinity; must be finite", where);
}

void check_precision(const char* where, const at::Tensor& precision, const AttentionShape& shape,
                     const at::Tensor& query) {
  if (!precision.defined()) return;
  const std::vector<std::int64_t> whole{shape.heads, shape.length, shape.value_dim},
      by_head{shape.heads, shape.value_dim};
  CHECK(precision.sizes() == whole || precision.sizes() == by_head ||
            (precision.dim() == 1 && precision.size(0) == shape.value_dim),
        "{}: prior_precision_by_dimension has shape {}; must be [{}], [{}, {}] or [{}, {}, {}]", where,
        shape_text(precision), shape.value_dim, shape.heads, shape.value_dim, shape.heads, shape.length,
        shape.value_dim);
  check_option_tensor(where, "prior_precision_by_dimension", precision, query);
  CHECK(
      at::isfinite(precision).logical_and(precision.ge(0)).logical_and(precision.le(largest_option)).all().item<bool>(),
      "{}: prior_precision_by_dimension holds NaN, a negative number or one above {}; must be between 0 and {}", where,
      largest_option, largest_option);
}

/// Checks that no size that a call allocates overflows. Expanded inputs can be larger than any memory.
void check_sizes(const char* where, const AttentionShape& shape) {
  const std::int64_t bytes_per_value = 64;  // results, packed keys and values, in float64
  std::int64_t bytes = checked_mul(shape.heads, shape.length, where);
  bytes = checked_mul(bytes, std::max(shape.key_dim, shape.value_dim) + first_keys, where);
  checked_mul(bytes, bytes_per_value, where);
}

/// Does not allocate memory of the tensor's size.
Extrema extrema_of(const at::Tensor& tensor) {
  const auto range = at::aminmax(tensor);  // a NaN anywhere makes both NaN
  const double low = std::get<0>(range).item<double>(), high = std::get<1>(range).item<double>();
  return {.smallest = low, .largest = high, .finite = std::isfinite(low) && std::isfinite(high)};
}

/// What to do where products may overflow the type of the computation.
std::string overflow_advice(at::ScalarType compute_type) {
  return compute_type == at::kDouble ? "float64; the activations are too large to be computed"
                                     : "float32; use --dtype float64";
}

/// The factor 1e-3 leaves room for rounding and for the sums of the softmax.
double overflow_limit(at::ScalarType compute_type) {
  return 1e-3 * (compute_type == at::kDouble ? std::numeric_limits<double>::max()
                                             : static_cast<double>(std::numeric_limits<float>::max()));
}

}  // namespace

AttentionShape shape_of(const AttentionOptions& options, const at::Tensor& query, const at::Tensor& key,
                        const at::Tensor& value) {
  const auto key_dim = static_cast<double>(query.size(2)), value_dim = static_cast<double>(value.size(2));
  return {.heads = query.size(0),
          .kv_heads = key.size(0),
          .group = query.size(0) / key.size(0),
          .length = query.size(1),
          .key_dim = query.size(2),
          .value_dim = value.size(2),
          .scale = options.scale != 0 ? options.scale : 1 / std::sqrt(key_dim),
          .prior_variance = options.prior_variance.value_or(1 / value_dim)};
}

KeyRange seeing_queries(const AttentionOptions& options, std::int64_t length, std::int64_t key) {
  KeyRange range{options.causal ? key : 0, length};
  if (options.window) {
    const std::int64_t reach = std::min(*options.window, length);
    range.begin = std::max(range.begin, key - reach + 1);
    range.end = std::min(range.end, key + reach);
  }
  range.begin = std::max(range.begin, options.first_query);
  return range;
}

KeyRange visible_keys(const AttentionOptions& options, std::int64_t length, std::int64_t query) {
  KeyRange range{0, options.causal ? query + 1 : length};
  if (options.window) {
    const std::int64_t reach = std::min(*options.window, length);  // a larger window could overflow the sums below
    range.begin = std::max<std::int64_t>(range.begin, query - reach + 1);
    range.end = std::min(range.end, query + reach);
  }
  return range;
}

AttentionShape checked_shape(const char* where, const AttentionOptions& options, const at::Tensor& query,
                             const at::Tensor& key, const at::Tensor& value) {
  check_options(where, options, options.prior_variance.value_or(0));
  check_tensor(where, "query", query, query);
  check_tensor(where, "key", key, query);
  check_tensor(where, "value", value, query);
  CHECK(key.size(0) == value.size(0) && key.size(1) == value.size(1),
        "{}: key has shape {}, value {}; heads and positions must agree", where, shape_text(key), shape_text(value));
  CHECK(key.size(1) == query.size(1) && key.size(2) == query.size(2),
        "{}: query has shape {}, key {}; positions and the last dimension must agree", where, shape_text(query),
        shape_text(key));
  CHECK(query.size(0) % key.size(0) == 0,
        "{}: {} query heads over {} kv heads; the first must be a multiple of the second", where, query.size(0),
        key.size(0));
  const AttentionShape shape = shape_of(options, query, key, value);
  check_sizes(where, shape);
  check_sequences(where, options, shape.length);
  check_bias(where, "key_bias", options.key_bias, shape, query);
  check_bias(where, "distance_bias", options.distance_bias, shape, query);
  check_sink_logit(where, options.sink_logit, shape, query);
  check_precision(where, options.prior_precision_by_dimension, shape, query);
  return shape;
}

void check_extrema(const char* where, const char* name, const Extrema& extrema) {
  if (extrema.finite) return;
  throw_run_failed("{}: {} holds NaN or infinity; earlier activations overflowed or a weight is damaged", where, name);
}

void check_scores(const char* where, at::ScalarType compute_type, const AttentionShape& shape, const Extrema& query,
                  const Extrema& key) {
  const double largest_score =
      query.magnitude() * key.magnitude() * static_cast<double>(shape.key_dim) * std::max(1.0, std::abs(shape.scale));
  if (largest_score < overflow_limit(compute_type)) return;
  throw_run_failed("{}: query up to {:.3g} times key up to {:.3g} may overflow {}", where, query.magnitude(),
                   key.magnitude(), overflow_advice(compute_type));
}

void check_spread(const char* where, at::ScalarType compute_type, const AttentionShape& shape, const Extrema& value) {
  const double spread = value.largest - value.smallest, largest = value.magnitude();
  const double residual_squares = spread * spread;
  const double norm_squares = largest * largest * static_cast<double>(shape.value_dim);
  if (std::max(residual_squares, norm_squares) < overflow_limit(compute_type)) return;
  throw_run_failed("{}: value from {:.3g} to {:.3g}: their squares may overflow {}", where, value.smallest,
                   value.largest, overflow_advice(compute_type));
}

void check_products(const char* where, double scale, const at::Tensor& query, const at::Tensor& key) {
  const Extrema query_extrema = extrema_of(query.detach()), key_extrema = extrema_of(key.detach());
  check_extrema(where, "query", query_extrema);
  check_extrema(where, "key", key_extrema);
  const at::ScalarType type = query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  check_scores(where, type, {.key_dim = query.size(-1), .scale = scale == 0 ? 1 : scale}, query_extrema, key_extrema);
}

void check_magnitudes(const char* where, at::ScalarType compute_type, const AttentionShape& shape,
                      const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const Extrema query_extrema = extrema_of(query), key_extrema = extrema_of(key), value_extrema = extrema_of(value);
  check_extrema(where, "query", query_extrema);
  check_extrema(where, "key", key_extrema);
  check_extrema(where, "value", value_extrema);
  check_scores(where, compute_type, shape, query_extrema, key_extrema);
  check_spread(where, compute_type, shape, value_extrema);
}

QueryStatistics allocate_statistics(const AttentionOptions& options, const AttentionShape& shape,
                                    at::ScalarType scalar_type, const at::Tensor& query) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const ReturnedFields& returned = options.returned;
  const auto filled = [&](at::IntArrayRef sizes) { return at::full(sizes, nan, query.options().dtype(scalar_type)); };
  const auto scalar = [&] { return filled({shape.heads, shape.length}); };
  QueryStatistics statistics;
  if (returned.output) statistics.output = at::zeros({shape.heads, shape.length, shape.value_dim}, query.options());
  for (const QueryField& field : query_fields) {
    if (field.wanted(returned)) statistics.*field.tensor = scalar();
  }
  if (options.sink_logit.defined()) {
    statistics.sink_logit_mass = scalar();
    statistics.first_weight = scalar();
  }
  if (returned.first_masses > 0) {
    statistics.first_mass = filled({shape.heads, shape.length, returned.first_masses});
    statistics.column_mean = filled({shape.heads, returned.first_masses});
  }
  if (returned.key_means != KeyMeans::none) {
    statistics.key_mean = filled({shape.heads, shape.length, key_windows});
    statistics.key_queries = at::zeros({shape.heads, shape.length}, query.options().dtype(at::kLong));
  }
  if (returned.top_keys > 0) {
    statistics.top_key = at::full({shape.heads, shape.length, returned.top_keys}, -1, query.options().dtype(at::kLong));
    statistics.top_weight = filled({shape.heads, shape.length, returned.top_keys});
  }
  statistics.value_variance = filled({shape.kv_heads, shape.value_dim});
  if (returned.per_dimension) {
    statistics.residual_by_dimension = filled({shape.heads, shape.length, shape.value_dim});
    statistics.observation_precision_by_dimension = filled({shape.heads, shape.length, shape.value_dim});
  }
  return statistics;
}

at::Tensor bias_rows(const at::Tensor& bias, at::ScalarType compute_type) {
  if (!bias.defined()) return {};
  return at::atleast_2d(bias).to(compute_type).contiguous();
}

at::Tensor precision_rows(const AttentionOptions& options, const AttentionShape& shape, at::ScalarType compute_type) {
  if (!options.prior_precision_by_dimension.defined()) return {};
  const at::Tensor& precision = options.prior_precision_by_dimension;
  const at::Tensor by_query =
      precision.dim() == 3 ? precision : at::atleast_2d(precision).unsqueeze(1);  // [head or 1, query or 1, value_dim]
  return by_query.to(compute_type).expand({shape.heads, shape.length, shape.value_dim});
}

}  // namespace gainlens::kernels
