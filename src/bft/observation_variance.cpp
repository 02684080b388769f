#include "bft/observation_variance.h"

#include "core/check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace gainlens::bft {
namespace {

using at::Tensor;

std::string printed(at::IntArrayRef shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

std::string shape_of(const Tensor& tensor) {
  return tensor.defined() ? printed(tensor.sizes()) : "none";
}

void check_shape(const Tensor& tensor, at::IntArrayRef shape, const Tensor& like, std::string_view name) {
  CHECK(tensor.defined() && tensor.sizes() == shape, "observation_variance: {} has shape {}; must be {}", name,
        shape_of(tensor), printed(shape));
  CHECK(tensor.scalar_type() == like.scalar_type(), "observation_variance: {} is {}; must be {} as the weights", name,
        c10::toString(tensor.scalar_type()), c10::toString(like.scalar_type()));
}

void check_attention(const AttentionWeights& attention) {
  const Tensor &weights = attention.weights, &values = attention.values;
  CHECK(weights.defined() && weights.dim() == 4 && weights.is_floating_point(),
        "observation_variance: the weights have shape {}; must be floating-point, [batch, head, query, key]",
        shape_of(weights));
  CHECK(values.defined() && values.dim() == 4 && values.size(3) >= 1,
        "observation_variance: the values have shape {}; must be [batch, head, key, dimension]", shape_of(values));
  check_shape(values, {weights.size(0), weights.size(1), weights.size(3), values.size(3)}, weights, "values");
}

void check_noise(const AttentionWeights& attention, const NoisyTokens* noise) {
  CHECK(noise != nullptr,
        "observation_variance: delta without tokens and projections; give them, or choose delta_weight_free");
  const Tensor& weights = attention.weights;
  const std::int64_t heads = weights.size(1), d = attention.values.size(3);
  check_shape(noise->query, {weights.size(0), heads, weights.size(2), d}, weights, "query");
  CHECK(noise->key_projection.defined() && noise->key_projection.dim() == 3,
        "observation_variance: the key projection must be [head, dimension, model]");
  const std::int64_t model = noise->key_projection.size(2);
  check_shape(noise->key_projection, {heads, d, model}, weights, "key projection");
  check_shape(noise->value_projection, {heads, d, model}, weights, "value projection");
  check_shape(noise->token_precision, {weights.size(0), weights.size(3)}, weights, "token precision");
}

/// Weights divided by their sum, and what the formulas need of them.
struct Shares {
  Tensor p;      // [batch, head, query, key]
  Tensor n_eff;  // [batch, head, query, 1] 1 where no key is visible
  Tensor any;    // [batch, head, query, 1] bool: a weight is not 0
};

Shares shares_of(const Tensor& weights, double min_share) {
  const Tensor size = weights.abs().sum(-1, true);
  const Tensor any = size > 0;
  Tensor sum = weights.sum(-1, true);
  if (min_share > 0) {
    const Tensor least = min_share * size;
    sum = at::where(sum.abs() < least, at::where(at::signbit(sum), -least, least), sum);
  }
  const Tensor safe_sum = at::where(any, sum, at::ones_like(sum));
  const Tensor p = weights / safe_sum;
  const Tensor squares = at::where(any, p.square().sum(-1, true), at::ones_like(sum));
  return {p, squares.reciprocal(), any};
}

/// The mean of the first 64 values [batch, head, 1, dimension], a constant for gradients. About it sums of squares
/// cancel less; no result depends on it.
Tensor centre_of(const Tensor& values) {
  const std::int64_t first = std::min<std::int64_t>(values.size(2), 64);
  return values.detach().slice(2, 0, first).mean(2, true);
}

/// sum_j a_j (v_j - e)^k for k = 0, 1, 2, for each row of coefficients a.
/// @param coefficients  [batch, head, query, key]
/// @param values        [batch, head, key, dimension] centred
/// @param estimate      [batch, head, query, dimension] of the centred values
struct Moments {
  Moments(const Tensor& coefficients, const Tensor& values, const Tensor& estimate)
      : zeroth(coefficients.sum(-1, true)) {
    const Tensor raw = coefficients.matmul(values);
    first = raw - estimate * zeroth;
    second = (coefficients.matmul(values.square()) - 2 * estimate * raw + estimate.square() * zeroth).clamp_min(0);
  }
  Tensor zeroth;         // [batch, head, query, 1]
  Tensor first, second;  // [batch, head, query, dimension]
};

/// sum over the visible values of (v - their mean)^2 [.., query, dimension], and their number [.., query, 1].
std::pair<Tensor, Tensor> visible_squares(const AttentionWeights& attention, const Tensor& values) {
  Tensor sum, squares, count;
  if (attention.visible.defined()) {
    CHECK(attention.visible.scalar_type() == at::kBool, "observation_variance: visible is {}; must be bool",
          c10::toString(attention.visible.scalar_type()));
    const Tensor seen = attention.visible.expand_as(attention.weights).to(values.scalar_type());
    sum = seen.matmul(values);
    squares = seen.matmul(values.square());
    count = seen.sum(-1, true);
  } else {
    CHECK(attention.weights.size(2) == attention.weights.size(3),
          "observation_variance: {} queries and {} keys; give `visible`, as causal attention has as many of both",
          attention.weights.size(2), attention.weights.size(3));
    sum = values.cumsum(2);
    squares = values.square().cumsum(2);
    count = at::arange(1, values.size(2) + 1, values.options()).view({1, 1, -1, 1});
  }
  return {(squares - sum.square() / count.clamp_min(1)).clamp_min(0), count};
}

/// numerator / denominator, NaN without a gradient where the denominator is not above 0.
Tensor defined_ratio(const Tensor& numerator, const Tensor& denominator) {
  const Tensor defined = denominator > 0;
  return at::where(defined, numerator / at::where(defined, denominator, at::ones_like(denominator)), NAN);
}

Tensor delta_variance(const AttentionWeights& attention, const Shares& shares, const Tensor& values,
                      const Tensor& estimate, const NoisyTokens& noise) {
  const double scale = 1 / std::sqrt(static_cast<double>(values.size(3)));
  const Tensor gradient = noise.query.matmul(noise.key_projection) * scale;        // u [batch, head, query, model]
  const Tensor along = gradient.matmul(noise.value_projection.transpose(-1, -2));  // w_i·u [.., query, dimension]
  const Tensor rows = noise.value_projection.square().sum(-1).unsqueeze(-2);       // |w_i|^2 [head, 1, dimension]
  const Tensor coefficients =
      shares.p.square() / noise.token_precision.view({attention.weights.size(0), 1, 1, attention.weights.size(3)});
  const Moments moments(coefficients, values, estimate);
  return rows * moments.zeroth + 2 * along * moments.first + gradient.square().sum(-1, true) * moments.second;
}

}  // namespace

Tensor observation_variance(Estimator estimator, const AttentionWeights& attention, const EstimatorOptions& options,
                            const NoisyTokens* noise) {
  check(options, estimator);
  check_attention(attention);
  if (estimator == Estimator::delta) check_noise(attention, noise);

  const double nu = options.prior_strength;
  const double prior = nu * prior_variance(options, static_cast<std::size_t>(attention.values.size(3)));
  const Tensor centre = centre_of(attention.values), values = attention.values - centre;
  const Shares shares = shares_of(attention.weights, estimator == Estimator::sandwich ? options.least_weight_share : 0);
  const Tensor& n = shares.n_eff;
  Tensor estimate = shares.p.matmul(values);  // e - centre
  // Where a sum was raised, p does not sum to one, and e does not move with the values.
  if (estimator == Estimator::sandwich) estimate = estimate + centre * (shares.p.sum(-1, true) - 1);
  const auto residual = [&] { return Moments(shares.p, values, estimate).second; };
  const auto weighted_squares = [&] { return Moments(shares.p.square(), values, estimate).second; };

  Tensor variance;
  switch (estimator) {
    case Estimator::reml:
    case Estimator::reml_naive:
    case Estimator::reml_conjugate:
      variance = variance_of_moments(estimator, n, residual(), options, attention.values.size(3));
      break;
    case Estimator::sandwich:
      variance = weighted_squares();
      break;
    case Estimator::kish: {
      const auto [squares, count] = visible_squares(attention, values);
      variance = defined_ratio(squares + prior, (count - 1 + nu) * n);
      break;
    }
    case Estimator::delta:
      variance = delta_variance(attention, shares, values, estimate, *noise);
      break;
    case Estimator::delta_weight_free:
      variance = (residual() + prior) / (n + nu) + *options.score_noise * *options.score_noise * weighted_squares();
      break;
  }
  return at::where(shares.any, variance, NAN);
}

Tensor variance_of_moments(Estimator estimator, const Tensor& n_eff, const Tensor& residual,
                           const EstimatorOptions& options, std::int64_t dimensions) {
  const double nu = options.prior_strength;
  const double prior = nu * prior_variance(options, static_cast<std::size_t>(dimensions));
  switch (estimator) {
    case Estimator::reml:
      return (residual + prior) / (n_eff + nu);
    case Estimator::reml_naive:
      return defined_ratio(residual, n_eff - 1);
    case Estimator::reml_conjugate:
      return defined_ratio(n_eff * residual + prior, (n_eff - 1 + nu) * n_eff);
    default:
      ASSERT(false, "variance of moments: '{}' needs more than n_eff and S", name_of(estimator));
      return {};
  }
}

Tensor observation_precision(const Tensor& variance, const EstimatorOptions& options) {
  // The bounds are those of the variance: 1/0 beyond a bound would have a gradient of 0 times infinity.
  return variance.clamp(1 / options.most_precision, 1 / options.least_precision).reciprocal();
}

}  // namespace gainlens::bft
