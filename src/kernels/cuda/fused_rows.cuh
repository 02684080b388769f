#pragma once

// The state of a thread for its two query rows: running sums of the softmax, and the statistics at the end. Include
// after fused_tiles.cuh.

#include "kernels/cuda/fused_arguments.h"

#include <math.h>

namespace gainlens::kernels::device {

constexpr float infinity = INFINITY;
constexpr float log2_of_e = 1.44269504088896340736f;
constexpr float weightless_score = -1e4f;  // its weight is 0; unlike with -inf, 0 times it is 0

GAINLENS_DEVICE float quad_maximum(float value) {
  value = fmaxf(value, shuffle_xor(value, 1));
  return fmaxf(value, shuffle_xor(value, 2));
}
GAINLENS_DEVICE float quad_sum(float value) {
  value += shuffle_xor(value, 1);
  return value + shuffle_xor(value, 2);
}

GAINLENS_DEVICE double quad_sum(double value) {
  value += shuffle_xor(value, 1);
  return value + shuffle_xor(value, 2);
}

/// Running sums over the keys other than key 0, relative to `maximum`. Sums of a tile are float32, sums over tiles are
/// float64. Before `gather` they hold only the columns of this thread.
struct RowSums {
  float maximum = -infinity;  ///< of the whole row; the four threads of a row have the same
  double total = 0;           ///< sum exp(s - maximum)
  double total_squares = 0;
  double weighted_score = 0;  ///< sum exp(s - maximum) (s - maximum)
  double value_weight = 0;    ///< sum of the weights in the products with values; these may be rounded to bfloat16

  /// Turns the scores of this row (elements `first` and `first + 1` of every block) into weights.
  /// @returns  the factor by which the sums so far were multiplied
  template <int blocks>
  GAINLENS_DEVICE float absorb(float (&scores)[blocks][4], int first) {
    float largest = maximum;
    GAINLENS_UNROLL
    for (int block = 0; block < blocks; ++block)
      largest = fmaxf(largest, fmaxf(scores[block][first], scores[block][first + 1]));
    largest = quad_maximum(largest);
    const float origin = largest == -infinity ? 0 : largest;
    const float fall = fmaxf(maximum - origin, weightless_score);
    const float shrink = exp2_fast(fall * log2_of_e);
    float tile_total = 0, tile_squares = 0, tile_weighted = 0;
    GAINLENS_UNROLL
    for (int block = 0; block < blocks; ++block) {
      GAINLENS_UNROLL
      for (int i = first; i < first + 2; ++i) {
        const float difference = fmaxf(scores[block][i] - origin, weightless_score);
        const float weight = exp2_fast(difference * log2_of_e);
        tile_total += weight;
        tile_squares += weight * weight;
        tile_weighted += weight * difference;
        scores[block][i] = weight;
      }
    }
    const double ratio = shrink;
    weighted_score = ratio * (weighted_score + fall * total) + tile_weighted;
    total = ratio * total + tile_total;
    total_squares = ratio * ratio * total_squares + tile_squares;
    value_weight *= ratio;
    maximum = largest;
    return shrink;
  }

  GAINLENS_DEVICE void gather() {
    total = quad_sum(total);
    total_squares = quad_sum(total_squares);
    weighted_score = quad_sum(weighted_score);
    value_weight = quad_sum(value_weight);
  }
};

/// How the mass of a row is split between key 0 and the others, without the sink.
struct RowMass {
  double first = 0, others = 0;  ///< p_0 and 1 - p_0
  double n_eff = 1, n_others = NAN;
  double entropy = 0;
  double log_total = 0;  ///< ln sum exp(s) over all visible keys
};

/// -p ln p, and 0 at p = 0. `rest` is 1 - p: near p = 1 the logarithm of p itself would cancel.
GAINLENS_DEVICE double entropy_term(double p, double rest) {
  if (p > 0.5) return -p * log1p(-rest);
  return p > 0 ? -p * log(p) : 0;
}

/// Adds key 0 to the others. Key 0 or another key must be visible.
GAINLENS_DEVICE RowMass mass_of_row(const RowSums& sums, double first_score) {
  const double maximum = fmax(static_cast<double>(sums.maximum), first_score);
  const bool alone = sums.total == 0;
  const double total_others = sums.total;
  const double others = alone ? 0 : total_others * exp(static_cast<double>(sums.maximum) - maximum);
  const double first = exp(first_score - maximum), total = others + first;
  RowMass mass;
  mass.first = first / total;
  mass.others = others / total;
  mass.log_total = maximum + log(total);
  if (alone) return mass;
  // Exactly, n_eff >= 1 and entropy >= 0. Rounding may break these bounds by a unit in the last place.
  mass.n_others = fmax(1.0, total_others * total_others / sums.total_squares);
  mass.n_eff = fmax(1.0, 1 / (mass.first * mass.first + mass.others * mass.others / mass.n_others));
  const double entropy_others = fmax(0.0, log(total_others) - sums.weighted_score / total_others);
  mass.entropy =
      mass.others * entropy_others + entropy_term(mass.others, mass.first) + entropy_term(mass.first, mass.others);
  return mass;
}

/// Sums over dimensions of one row.
enum DimensionSum {
  sum_residual,
  sum_precision,
  sum_log_variance,
  sum_gain,
  sum_gain_scaled,
  sum_squares,
  sum_gained_squares,
  sum_residual_others,
  sum_precision_others,
  sum_gain_others,
  sum_squares_others,
  dimension_sums
};

/// Writes the results of one row. Keeps only a few floats of its masses, since the sums over dimensions need the
/// registers.
template <typename Element>
class RowResults {
 public:
  GAINLENS_DEVICE RowResults(const FusedArguments& in, int head, int position, int width, const RowMass& mass)
      : in_(in),
        row_(static_cast<std::int64_t>(head) * in.length + position),
        kv_row_(head / in.group * width),
        inverse_size_(1 / in.size[head / in.group]),
        first_(static_cast<float>(mass.first)),
        others_(static_cast<float>(mass.others)),
        count_(static_cast<float>(mass.n_eff + in.prior_strength)),
        count_others_(static_cast<float>(mass.n_others + in.prior_strength)) {
    if (in.precision != nullptr) {
      lambda_ = in.precision + head * in.precision_strides[0] + position * in.precision_strides[1];
    }
    if (in.sink_logit != nullptr)
      keys_share_ = static_cast<float>(1 / (1 + exp(static_cast<double>(in.sink_logit[head]) - mass.log_total)));
  }

  /// Writes the fields that do not depend on values.
  /// @param first_scores  of keys 0, 1, ..., -inf if hidden
  GAINLENS_DEVICE void store_masses(const RowMass& mass, const float* first_scores) const {
    put(in_.fields.n_eff, static_cast<float>(mass.n_eff));
    put(in_.fields.entropy, static_cast<float>(mass.entropy));
    put(in_.fields.without_first_n_eff, static_cast<float>(mass.n_others));
    if (in_.sink_logit != nullptr) {
      const double sink = in_.sink_logit[row_ / in_.length];
      put(in_.fields.sink_logit_mass, static_cast<float>(1 / (1 + exp(mass.log_total - sink))));
      put(in_.fields.first_weight, static_cast<float>(mass.first));
    }
    for (int key = 0; key < in_.first_masses; ++key) {
      const double share = exp(static_cast<double>(first_scores[key]) - mass.log_total);
      in_.first_mass[row_ * in_.first_masses + key] = keys_share_ * static_cast<float>(share);
    }
  }

  /// Adds dimension `dim` to the sums, and writes the fields by dimension.
  /// @param offset, spread_others  (e' - c) / unit and S' / unit^2 of this dimension
  GAINLENS_DEVICE void add(int dim, float offset, float spread_others, float (&sums)[dimension_sums]) const {
    const float distance = in_.first_offset[kv_row_ + dim] - offset, pull = first_ * distance;
    const float spread = others_ * (spread_others + pull * distance);
    const float centre = in_.centre[kv_row_ + dim], unit = in_.unit[kv_row_ + dim];
    const float residual = spread * unit * unit, residual_others = spread_others * unit * unit;
    const float estimate = centre + (offset + pull) * unit, estimate_others = centre + offset * unit;
    const float lambda = lambda_ != nullptr ? lambda_[dim * in_.precision_strides[2]] : in_.prior_precision;
    const float variance = residual + in_.prior_total, variance_others = residual_others + in_.prior_total;
    const float precision = count_ / variance, gain = count_ / (lambda * variance + count_);
    sums[sum_residual] += residual;
    sums[sum_precision] += precision;
    sums[sum_log_variance] += logf(variance);
    sums[sum_gain] += gain;
    const float relative = estimate * inverse_size_, relative_others = estimate_others * inverse_size_;
    sums[sum_squares] += relative * relative;
    sums[sum_gained_squares] += gain * relative * (gain * relative);
    if (in_.inverse_variance != nullptr) {
      const float scaled = spread * in_.inverse_variance[kv_row_ + dim] + in_.prior_strength;
      sums[sum_gain_scaled] += count_ / (lambda * scaled + count_);
    }
    if (in_.fields.without_first_residual != nullptr) {
      sums[sum_residual_others] += residual_others;
      sums[sum_precision_others] += count_others_ / variance_others;
    }
    sums[sum_gain_others] += count_others_ / (lambda * variance_others + count_others_);
    sums[sum_squares_others] += relative_others * relative_others;

    const std::int64_t at = row_ * in_.head_dim + dim;
    if (in_.output != nullptr)
      static_cast<typename Element::Stored*>(in_.output)[at] = Element::stored(keys_share_ * estimate);
    if (in_.residual_by_dimension != nullptr) in_.residual_by_dimension[at] = residual;
    if (in_.precision_by_dimension != nullptr) in_.precision_by_dimension[at] = precision;
  }

  /// Writes the means over dimensions.
  GAINLENS_DEVICE void store_means(const float (&sums)[dimension_sums]) const {
    const FusedFields& to = in_.fields;
    const float dims = static_cast<float>(in_.head_dim);
    put(to.residual, sums[sum_residual] / dims);
    put(to.observation_precision, sums[sum_precision] / dims);
    put(to.log_observation_precision, logf(count_) - sums[sum_log_variance] / dims);
    put(to.kalman_gain, sums[sum_gain] / dims);
    put(to.kalman_gain_scaled, sums[sum_gain_scaled] / dims);
    put(to.estimate_norm, sqrtf(sums[sum_squares]) / inverse_size_);
    put(to.gained_estimate_norm, sqrtf(sums[sum_gained_squares]) / inverse_size_);
    if (isnan(count_others_)) return;
    put(to.without_first_residual, sums[sum_residual_others] / dims);
    put(to.without_first_observation_precision, sums[sum_precision_others] / dims);
    put(to.without_first_kalman_gain, sums[sum_gain_others] / dims);
    put(to.without_first_norm, sqrtf(sums[sum_squares_others]) / inverse_size_);
  }

 private:
  GAINLENS_DEVICE void put(float* field, float value) const {
    if (field != nullptr) field[row_] = value;
  }

  const FusedArguments& in_;
  const std::int64_t row_;
  const int kv_row_;
  const float inverse_size_;          ///< 1 / the values' size, a power of two
  const float first_, others_;        ///< p_0, 1 - p_0
  const float count_, count_others_;  ///< n_eff + nu of all keys and of the others; the second may be NaN
  const float* lambda_ = nullptr;
  float keys_share_ = 1;  ///< 1 - p_s
};

}  // namespace gainlens::kernels::device
