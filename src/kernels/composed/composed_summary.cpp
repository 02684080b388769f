#include "kernels/composed/composed_summary.h"

#include "core/error.h"
#include "core/estimator.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

namespace gainlens::kernels {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// -p ln p, and 0 at p = 0. `rest` is 1 - p: near p = 1 the logarithm of p itself would cancel.
at::Tensor entropy_term(const at::Tensor& p, const at::Tensor& rest) {
  return at::where(p.gt(0.5), -p * at::log1p(-rest), -at::xlogy(p, p));
}

/// How the mass of every query [head, query] is split between key 0 and the others; float64. NaN if a query sees no
/// key.
struct Masses {
  at::Tensor alone;            ///< true if there are no other keys
  at::Tensor first, others;    ///< p_0 and 1 - p_0, without the sink
  at::Tensor n_eff, n_others;  ///< n_others: NaN if there are no others
  at::Tensor entropy;          ///< undefined unless wanted
  at::Tensor log_total;        ///< ln sum exp(s) over all visible keys
};

Masses split_masses(const BlockSums& sums, bool with_entropy) {
  const at::Tensor first_score = sums.first_scores.select(2, 0).to(at::kDouble),
                   largest_other = sums.maximum.to(at::kDouble);
  const at::Tensor& total_others = sums.total;
  const at::Tensor maximum = at::maximum(largest_other, first_score);
  const at::Tensor others = total_others * (largest_other - maximum).exp(), first = (first_score - maximum).exp();
  const at::Tensor total = others + first;
  Masses m;
  m.alone = total_others.eq(0);
  m.first = first / total;  // 0 / 0 = NaN if no key is seen
  m.others = others / total;
  // Exactly, n_eff >= 1 and entropy >= 0. Rounding may break these bounds by a unit in the last place.
  m.n_others = (total_others.square() / sums.total_squares).clamp_min(1);
  m.n_eff = at::where(m.alone, m.first, (m.first.square() + m.others.square() / m.n_others).reciprocal().clamp_min(1));
  m.log_total = (maximum + total.log()).masked_fill(total.eq(0), nan);
  if (!with_entropy) return m;
  const at::Tensor entropy_others = (total_others.log() - sums.weighted_score / total_others).clamp_min(0);
  m.entropy = (m.others * entropy_others).masked_fill(m.alone, 0) + entropy_term(m.others, m.first) +
              entropy_term(m.first, m.others);
  return m;
}

/// What the estimators take of one query, over all its keys or over those other than key 0. Shapes [head, query, 1],
/// with value_dim for sums of squares.
struct Evidence {
  at::Tensor n_eff;
  at::Tensor degrees;   ///< n_eff - 1, without cancellation where key 0 has nearly all the mass
  at::Tensor residual;  ///< S
  at::Tensor squares;   ///< sum p^2 (v - e)^2 or, for kish, sum (v - mean)^2 over the visible values; or undefined
  at::Tensor visible;   ///< number of visible keys, for kish
  at::Tensor rounding;  ///< what rounding leaves of `residual` or `squares`; for estimators without a floor
};

/// V = numerator / count. So the gain, count / (lambda numerator + count), also holds for V = 0.
struct VarianceRatio {
  at::Tensor numerator;  ///< [head, query, value_dim]
  at::Tensor count;      ///< [head, query, 1], NaN where V is not defined

  /// 1/V.
  /// @param rounding  of the numerator; undefined: V has a floor. Else NaN where V is too small to be given
  at::Tensor precision(const at::Tensor& rounding) const {
    const at::Tensor found = count / numerator;
    if (!rounding.defined()) return found;
    return found.masked_fill(numerator.lt(min_variance * count).logical_or(numerator.lt(resolved * rounding)), nan);
  }

  static constexpr double resolved = 1e4;  // V is given with 4 digits at least
};

/// Source: docs/estimators.md.
/// @param unit  [head, 1, value_dim] factor on every square of values; undefined: 1
VarianceRatio variance_ratio(const AttentionOptions& options, const Evidence& evidence, double prior_variance,
                             const at::Tensor& unit) {
  const auto scaled = [&](const at::Tensor& squares) { return unit.defined() ? squares * unit : squares; };
  const double nu = options.prior_strength, prior = nu * prior_variance;
  const auto defined = [](const at::Tensor& count) { return count.masked_fill(count.le(0), nan); };
  const at::Tensor& n = evidence.n_eff;
  switch (options.estimator.name) {
    case Estimator::reml:
      return {scaled(evidence.residual) + prior, n + nu};
    case Estimator::reml_naive:
      return {scaled(evidence.residual), defined(evidence.degrees)};
    case Estimator::reml_conjugate:
      return {n * scaled(evidence.residual) + prior, defined((evidence.degrees + nu) * n)};
    case Estimator::sandwich:
      return {scaled(evidence.squares), at::ones_like(n).masked_fill_(at::isnan(n), nan)};
    case Estimator::kish:
      return {scaled(evidence.squares) + prior, defined((evidence.visible - 1 + nu) * n)};
    case Estimator::delta_weight_free: {
      const double noise = options.estimator.score_noise * options.estimator.score_noise;
      return {scaled(evidence.residual) + prior + noise * (n + nu) * scaled(evidence.squares), n + nu};
    }
    case Estimator::delta:
      break;
  }
  throw_internal_error(__FILE__, __LINE__, "an estimator that was not refused");
}

at::Tensor norm_of(const at::Tensor& rows) {
  return rows.square().sum(-1).sqrt();
}

/// Writes the fields of one block into the result.
class BlockSummary {
 public:
  BlockSummary(const AttentionOptions& options, const AttentionShape& shape, const SummaryPriors& priors,
               const BlockSums& sums, std::int64_t begin, QueryStatistics& result)
      : options_(options),
        shape_(shape),
        priors_(priors),
        sums_(sums),
        masses_(split_masses(sums, options.returned.entropy)),
        begin_(begin),
        rows_(sums.maximum.size(1)),
        result_(result) {
    if (priors.prior_precision.defined()) {
      precision_ = pad_positions(priors.prior_precision.slice(1, begin, begin + rows_), rows_);
    }
  }

  void run() {
    put(result_.n_eff, masses_.n_eff);
    put(result_.entropy, masses_.entropy);
    const at::Tensor pull = masses_.first.unsqueeze(2) * sums_.first_distance;
    const at::Tensor estimate = sums_.estimate_others + pull;
    const at::Tensor residual =
        masses_.others.unsqueeze(2) * at::addcmul(sums_.residual_others, pull, sums_.first_distance);
    put_all(estimate, evidence_of_all(residual));
    if (options_.returned.without_first || options_.returned.without_first_moments) put_others();
    put_masses(estimate);
  }

 private:
  void put(const at::Tensor& field, const at::Tensor& values) const {
    if (!field.defined()) return;
    const std::int64_t rows = std::min(rows_, shape_.length - begin_);
    field.slice(1, begin_, begin_ + rows).copy_(values.slice(1, 0, rows));
  }

  /// n / (lambda variance + n), which is lambda_obs / (lambda + lambda_obs) and also holds for a variance of 0.
  at::Tensor gain(const at::Tensor& count, const at::Tensor& variance) const {
    const at::Tensor weighted = precision_.defined() ? precision_ * variance : options_.prior_precision * variance;
    return count / (weighted + count);
  }

  Evidence evidence_of_others() const {
    Evidence found{.n_eff = masses_.n_others.unsqueeze(2), .residual = sums_.residual_others};
    const EstimatorSums& own = sums_.estimator;
    if (own.degrees.defined()) found.degrees = own.degrees.unsqueeze(2);
    if (own.visible.weight.defined()) {
      found.visible = own.visible.weight;
      found.squares = own.visible.weight * own.visible.residual;
    }
    if (own.squares.weight.defined()) found.squares = own.weighted_squares(at::zeros_like(sums_.first_distance));
    found.rounding = rounding();
    return found;
  }

  /// The rounding of the sum over the others that V comes from; undefined if V has a floor.
  at::Tensor rounding() const {
    if (!has_no_floor(options_.estimator.name)) return {};
    const EstimatorSums& own = sums_.estimator;
    return own.squares.weight.defined() ? own.rounding_of_squares : own.rounding_of_residual;
  }

  /// The others with key 0. No term is negative, so nothing cancels.
  Evidence evidence_of_all(const at::Tensor& residual) const {
    const at::Tensor n = masses_.n_eff.unsqueeze(2), first = masses_.first.unsqueeze(2),
                     others = masses_.others.unsqueeze(2);
    Evidence found{.n_eff = n, .residual = residual};
    const EstimatorSums& own = sums_.estimator;
    if (!own.degrees.defined()) return found;
    // 1 - sum p^2 = (1 - p_0)(2 p_0 + (1 - p_0)(n' - 1) / n'), times n.
    const at::Tensor degrees_of_others = (own.degrees / masses_.n_others).masked_fill(masses_.alone, 0).unsqueeze(2);
    found.degrees = others * (2 * first + others * degrees_of_others) * n;
    const at::Tensor& distance = sums_.first_distance;  // of key 0 from e'
    if (own.visible.weight.defined()) {
      const at::Tensor sees_first = at::isfinite(sums_.first_scores.slice(2, 0, 1)).to(at::kDouble);
      found.visible = own.visible.weight + sees_first;
      const at::Tensor share_of_others = sees_first * own.visible.weight / found.visible.clamp_min(1);
      found.squares =
          own.visible.weight * own.visible.residual + share_of_others * (distance - own.visible.offset).square();
    }
    found.rounding = rounding();
    if (found.rounding.defined())
      found.rounding = found.rounding * (own.squares.weight.defined() ? others.square() : others);
    if (own.squares.weight.defined()) {
      found.squares = (first * others * distance).square() + others.square() * own.weighted_squares(first * distance);
    }
    return found;
  }

  void put_all(const at::Tensor& estimate, const Evidence& evidence) const {
    const at::Tensor& residual = evidence.residual;
    const VarianceRatio ratio = variance_ratio(options_, evidence, shape_.prior_variance, {});
    const auto& [variance, count] = ratio;
    const at::Tensor precision = ratio.precision(evidence.rounding), gains = gain(count, variance);
    put(result_.residual, residual.mean(-1));
    put(result_.observation_precision, precision.mean(-1));
    put(result_.kalman_gain, gains.mean(-1));
    put(result_.residual_by_dimension, residual);
    put(result_.observation_precision_by_dimension, precision);
    if (options_.returned.log_observation_precision) {
      const at::Tensor log =
          evidence.rounding.defined() ? precision.log().mean(-1) : count.squeeze(2).log() - variance.log().mean(-1);
      put(result_.log_observation_precision, log);
    }
    if (options_.returned.kalman_gain_scaled) {
      const auto [relative, relative_count] = variance_ratio(options_, evidence, 1, priors_.inverse_variance);
      put(result_.kalman_gain_scaled, gain(relative_count, relative).mean(-1));
    }
    if (options_.returned.norms) {
      put(result_.estimate_norm, norm_of(estimate));
      put(result_.gained_estimate_norm, norm_of(gains * estimate));
    }
  }

  void put_others() const {
    const Evidence evidence = evidence_of_others();
    const VarianceRatio ratio = variance_ratio(options_, evidence, shape_.prior_variance, {});
    const auto& [variance, count] = ratio;
    if (options_.returned.without_first_moments) {
      put(result_.without_first_residual, sums_.residual_others.mean(-1).masked_fill(masses_.alone, nan));
      put(result_.without_first_observation_precision, ratio.precision(evidence.rounding).mean(-1));
    }
    if (!options_.returned.without_first) return;
    put(result_.without_first_n_eff, masses_.n_others);
    put(result_.without_first_kalman_gain, gain(count, variance).mean(-1));
    put(result_.without_first_norm, norm_of(sums_.estimate_others).masked_fill(masses_.alone, nan));
  }

  /// The output and the masses of the keys and of the sink. Their total includes the sink.
  void put_masses(const at::Tensor& estimate) const {
    at::Tensor output = estimate, masses;
    if (result_.first_mass.defined()) {
      const at::Tensor scores = sums_.first_scores.slice(2, 0, options_.returned.first_masses).to(at::kDouble);
      masses = (scores - masses_.log_total.unsqueeze(2)).exp();
    }
    if (priors_.sink_logit.defined()) {
      const at::Tensor keys_share = at::sigmoid(masses_.log_total - priors_.sink_logit);  // 1 - p_s
      put(result_.sink_logit_mass, at::sigmoid(priors_.sink_logit - masses_.log_total));
      put(result_.first_weight, masses_.first);
      output = output * keys_share.unsqueeze(2);
      if (masses.defined()) masses = masses * keys_share.unsqueeze(2);
    }
    put(result_.first_mass, masses);
    const at::Tensor sees_none = at::isnan(masses_.log_total).unsqueeze(2);
    if (result_.output.defined()) put(result_.output, output.masked_fill(sees_none, 0));
  }

  const AttentionOptions& options_;
  const AttentionShape& shape_;
  const SummaryPriors& priors_;
  const BlockSums& sums_;
  const Masses masses_;
  at::Tensor precision_;  // [head, query, value_dim] lambda of these queries; undefined: one number for all
  const std::int64_t begin_, rows_;
  QueryStatistics& result_;
};

}  // namespace

void finish_statistics(const AttentionOptions& options, QueryStatistics& result) {
  result.queries_without_keys = at::isnan(result.n_eff.slice(1, options.first_query)).sum().item<std::int64_t>();
  if (!result.first_mass.defined()) return;
  for (std::int64_t key = 0; key < options.returned.first_masses; ++key) {
    // The mean over the queries i >= m that see a key.
    const at::Tensor masses = result.first_mass.select(2, key).slice(1, key);
    result.column_mean.select(1, key).copy_(masses.to(at::kDouble).nanmean(1));
  }
}

void summarise_block(const AttentionOptions& options, const AttentionShape& shape, const SummaryPriors& priors,
                     const BlockSums& sums, std::int64_t begin, QueryStatistics& result) {
  BlockSummary(options, shape, priors, sums, begin, result).run();
}

}  // namespace gainlens::kernels
