#include "kernels/streaming/row_kernels.h"

#include "kernels/row_alignment.h"
#include "kernels/vector_dispatch.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/streaming/row_kernels.cpp"
// Highway wants its headers in this order.
// clang-format off
#include "hwy/foreach_target.h"  // includes this file once for each instruction set
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "kernels/power_of_two-inl.h"
#include "kernels/vector_table-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace gainlens::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Real>
void CapScores(Real* HWY_RESTRICT scores, std::int64_t begin, std::int64_t end, Real cap) {
  const Tag<Real> tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  const auto factor = hn::Set(tag, cap), inverse = hn::Set(tag, 1 / cap);
  for (std::int64_t i = begin - begin % lanes; i < end; i += lanes) {
    hn::Store(hn::Mul(factor, hn::Tanh(tag, hn::Mul(hn::Load(tag, scores + i), inverse))), tag, scores + i);
  }
}

template <typename Real>
Real LargestScore(const Real* HWY_RESTRICT scores, std::int64_t begin, std::int64_t end) {
  const Tag<Real> tag;
  auto largest = hn::Set(tag, -std::numeric_limits<Real>::infinity());
  for (std::int64_t i = begin; i < end; i += static_cast<std::int64_t>(hn::Lanes(tag))) {
    largest = hn::Max(largest, hn::Load(tag, scores + i));
  }
  return hn::GetLane(hn::MaxOfLanes(tag, largest));
}

/// Converts sums and accumulators to a larger maximum.
HWY_INLINE void Rescale(SoftmaxSums& sums, double maximum, double* HWY_RESTRICT accumulators, std::int64_t width) {
  const bool empty = sums.total == 0;  // sums.maximum - maximum would be -inf, and 0 times it NaN
  const double shift = empty ? 0 : sums.maximum - maximum;
  const double ratio = std::exp(shift);
  sums.weighted_score = ratio * (sums.weighted_score + shift * sums.total);
  sums.total *= ratio;
  sums.total_squares *= ratio * ratio;
  sums.maximum = maximum;
  if (empty) return;  // nothing is accumulated yet
  const Tag<double> tag;
  const auto factor = hn::Set(tag, ratio);
  for (std::int64_t i = 0; i < width; i += static_cast<std::int64_t>(hn::Lanes(tag))) {
    hn::Store(hn::Mul(hn::Load(tag, accumulators + i), factor), tag, accumulators + i);
  }
}

/// exp of differences <= 0, see absorb_scores.
HWY_INLINE hn::Vec<Tag<double>> ExpOfDifference(hn::Vec<Tag<double>> difference) {
  return hn::Exp(Tag<double>(), difference);
}

HWY_INLINE hn::Vec<Tag<float>> ExpOfDifference(hn::Vec<Tag<float>> difference) {
  const Tag<float> tag;
  const hn::RebindToSigned<Tag<float>> integer;
  const auto log2_e = hn::Set(tag, 0x1.7154760000000p+0f), log2_e_rest = hn::Set(tag, 0x1.4ae0c00000000p-26f);
  // Adding 1.5 2^23 rounds to the nearest integer n and leaves n in the lowest bits.
  const auto rounding = hn::Set(tag, 12582912.0f);
  const auto shifted = hn::MulAdd(difference, log2_e, rounding);
  const auto whole = hn::Sub(shifted, rounding);
  const auto fraction = hn::MulAdd(difference, log2_e_rest, hn::MulSub(difference, log2_e, whole));  // in [-1/2, 1/2]
  const auto power = PowerOfFraction(fraction);
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(integer, shifted));
  const auto scaled = hn::BitCast(tag, hn::Add(hn::BitCast(integer, power), exponent));
  return hn::IfThenElseZero(hn::Gt(difference, hn::Set(tag, -87.3f)), scaled);
}

template <typename Real>
void AbsorbScores(SoftmaxSums& sums, Real* HWY_RESTRICT scores, std::int64_t begin, std::int64_t end,
                  std::int64_t wanted_begin, std::int64_t wanted_end, double* HWY_RESTRICT accumulators,
                  std::int64_t width) {
  const Tag<Real> tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  const std::int64_t first = begin - begin % lanes, last = rounded_up(end, lanes);
  if (begin > first) std::fill(scores + first, scores + begin, -std::numeric_limits<Real>::infinity());
  if (last > end) std::fill(scores + end, scores + last, -std::numeric_limits<Real>::infinity());
  const double largest = LargestScore(scores, first, last);
  if (largest > sums.maximum) Rescale(sums, largest, accumulators, width);
  if (sums.total == 0 && largest == -std::numeric_limits<double>::infinity()) {  // no key has been seen yet
    std::fill(scores + wanted_begin, scores + wanted_end, Real{0});
    return;
  }

  // Differences are bounded below, so that a hidden key gives 0 * finite and not 0 * -inf. exp of the bound is exactly
  // 0.
  const auto lowest = hn::Set(tag, static_cast<Real>(sizeof(Real) == 4 ? -88 : -1000));
  const auto maximum = hn::Set(tag, static_cast<Real>(sums.maximum));
  auto total = hn::Zero(tag), total_squares = hn::Zero(tag), weighted_score = hn::Zero(tag);
  for (std::int64_t i = first; i < last; i += lanes) {
    const auto difference = hn::Max(hn::Sub(hn::Load(tag, scores + i), maximum), lowest);
    const auto weight = ExpOfDifference(difference);
    hn::Store(weight, tag, scores + i);
    total = hn::Add(total, weight);
    total_squares = hn::MulAdd(weight, weight, total_squares);
    weighted_score = hn::MulAdd(weight, difference, weighted_score);
  }
  sums.total += static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, total)));
  sums.total_squares += static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, total_squares)));
  sums.weighted_score += static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, weighted_score)));
  if (wanted_begin < first) std::fill(scores + wanted_begin, scores + first, Real{0});
  if (last < wanted_end) std::fill(scores + last, scores + wanted_end, Real{0});
}

template <typename Real>
void MassesOfFirst(const Real* scores, double log_total, double share, double* masses) {
  const hn::CappedTag<double, first_keys> tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  static_assert(first_keys % hn::MaxLanes(hn::CappedTag<double, first_keys>()) == 0);
  HWY_ALIGN double differences[first_keys];
  for (std::int64_t key = 0; key < first_keys; ++key) {
    // Hidden keys have -inf; exp of the bound is 0.
    differences[key] = std::max(static_cast<double>(scores[key]) - log_total, -1000.0);
  }
  for (std::int64_t key = 0; key < first_keys; key += lanes) {
    const auto mass = hn::Mul(hn::Exp(tag, hn::Load(tag, differences + key)), hn::Set(tag, share));
    hn::StoreU(mass, tag, masses + key);
  }
}

template <typename Real>
void AddScaled(const Real* HWY_RESTRICT weights, std::int64_t begin, std::int64_t end, Real factor,
               Real* HWY_RESTRICT sums) {
  const Tag<Real> tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  const auto scale = hn::Set(tag, factor);
  for (std::int64_t i = begin - begin % lanes; i < end; i += lanes) {
    hn::Store(hn::MulAdd(hn::Load(tag, weights + i), scale, hn::Load(tag, sums + i)), tag, sums + i);
  }
}

template <typename Real>
void ScoresOfKey(const Real* HWY_RESTRICT key, Rows<const Real> queries, std::int64_t count, std::int64_t dims,
                 Real factor, Real* HWY_RESTRICT scores) {
  const Tag<Real> tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  const std::int64_t whole = dims - dims % lanes;
  for (std::int64_t query = 0; query < count; ++query) {
    const Real* HWY_RESTRICT row = queries.row(query);
    auto even = hn::Zero(tag), odd = hn::Zero(tag);
    std::int64_t i = 0;
    for (; i + 2 * lanes <= whole; i += 2 * lanes) {
      even = hn::MulAdd(hn::LoadU(tag, row + i), hn::LoadU(tag, key + i), even);
      odd = hn::MulAdd(hn::LoadU(tag, row + i + lanes), hn::LoadU(tag, key + i + lanes), odd);
    }
    for (; i < whole; i += lanes) even = hn::MulAdd(hn::LoadU(tag, row + i), hn::LoadU(tag, key + i), even);
    Real sum = hn::GetLane(hn::SumOfLanes(tag, hn::Add(even, odd)));
    for (; i < dims; ++i) sum += row[i] * key[i];
    scores[query] = factor * sum;
  }
}

template <typename Real>
double SumOfWeights(const Real* HWY_RESTRICT scores, const double* HWY_RESTRICT normalisers, std::int64_t count) {
  const Tag<double> tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  const auto lowest = hn::Set(tag, -1000.0);  // exp of it is 0
  auto sum = hn::Zero(tag);
  HWY_ALIGN double differences[hn::MaxLanes(Tag<double>())];
  for (std::int64_t begin = 0; begin < count; begin += lanes) {
    const std::int64_t here = std::min(lanes, count - begin);
    for (std::int64_t i = 0; i < lanes; ++i)
      differences[i] = i < here ? static_cast<double>(scores[begin + i]) - normalisers[begin + i] : -1000.0;
    sum = hn::Add(sum, hn::Exp(tag, hn::Max(hn::Load(tag, differences), lowest)));
  }
  return hn::GetLane(hn::SumOfLanes(tag, sum));
}

template <typename Real>
void MomentsFromSums(const double* HWY_RESTRICT accumulators, std::int64_t width, double total,
                     Real* HWY_RESTRICT offset, Real* HWY_RESTRICT residual) {
  const hn::CappedTag<double, hn::MaxLanes(Tag<Real>())> tag;  // rows hold whole vectors of Real
  const hn::Rebind<Real, decltype(tag)> narrow;
  const auto factor = hn::Set(tag, total > 0 ? 1 / total : 0.0);
  const double* squares = accumulators + width;
  const auto store = [&](auto vector, Real* place) HWY_ATTR {
    if constexpr (sizeof(Real) == sizeof(double)) {
      hn::Store(vector, tag, place);
    } else {
      hn::Store(hn::DemoteTo(narrow, vector), narrow, place);
    }
  };
  for (std::int64_t i = 0; i < width; i += static_cast<std::int64_t>(hn::Lanes(tag))) {
    const auto mean = hn::Mul(hn::Load(tag, accumulators + i), factor);
    const auto spread = hn::NegMulAdd(mean, mean, hn::Mul(hn::Load(tag, squares + i), factor));
    store(mean, offset + i);
    store(hn::Max(spread, hn::Zero(tag)), residual + i);
  }
}

/// Two passes over `vectors` vectors of dimensions at once: their sums do not depend on each other, so the processor
/// can compute them in parallel.
template <int vectors, typename Real>
HWY_INLINE void TwoPassSlice(const Real* HWY_RESTRICT weights, const Real* HWY_RESTRICT values, std::int64_t keys,
                             std::int64_t width, hn::Vec<Tag<Real>> factor, Real* HWY_RESTRICT offset,
                             Real* HWY_RESTRICT residual) {
  const Tag<Real> tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  hn::Vec<Tag<Real>> mean[vectors], squares[vectors];
  for (int j = 0; j < vectors; ++j) mean[j] = squares[j] = hn::Zero(tag);
  for (std::int64_t key = 0; key < keys; ++key) {
    const auto weight = hn::Set(tag, weights[key]);
    for (int j = 0; j < vectors; ++j)
      mean[j] = hn::MulAdd(weight, hn::Load(tag, values + key * width + j * lanes), mean[j]);
  }
  for (int j = 0; j < vectors; ++j) mean[j] = hn::Mul(mean[j], factor);
  for (std::int64_t key = 0; key < keys; ++key) {
    const auto weight = hn::Set(tag, weights[key]);
    for (int j = 0; j < vectors; ++j) {
      const auto distance = hn::Sub(hn::Load(tag, values + key * width + j * lanes), mean[j]);
      squares[j] = hn::MulAdd(hn::Mul(weight, distance), distance, squares[j]);
    }
  }
  for (int j = 0; j < vectors; ++j) {
    hn::Store(mean[j], tag, offset + j * lanes);
    hn::Store(hn::Mul(squares[j], factor), tag, residual + j * lanes);
  }
}

template <typename Real>
void TwoPassMoments(const Real* HWY_RESTRICT weights, const Real* HWY_RESTRICT values, std::int64_t keys,
                    std::int64_t width, Real* HWY_RESTRICT offset, Real* HWY_RESTRICT residual) {
  const Tag<Real> tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  Real total = 0;
  for (std::int64_t key = 0; key < keys; ++key) total += weights[key];
  const auto factor = hn::Set(tag, total > 0 ? 1 / total : Real{0});
  std::int64_t i = 0;
  for (; i + 4 * lanes <= width; i += 4 * lanes)
    TwoPassSlice<4>(weights, values + i, keys, width, factor, offset + i, residual + i);
  for (; i < width; i += lanes) TwoPassSlice<1>(weights, values + i, keys, width, factor, offset + i, residual + i);
}

/// Sums over dimensions, one for each lane.
template <typename Real>
struct DimensionSums {
  using Vector = hn::Vec<Tag<Real>>;
  Vector residual, precision, log_variance, gain, gain_scaled;  // log_variance: of S + nu sigma0^2
  Vector squares, gained_squares;                               // of e and of K o e, in the unit of the values' size
};

template <typename Real>
double MeanOfLanes(hn::Vec<Tag<Real>> sum, std::int64_t dims) {
  const Tag<Real> tag;
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, sum))) / static_cast<double>(dims);
}

template <typename Real>
double RootOfLanes(hn::Vec<Tag<Real>> squares) {
  const Tag<Real> tag;
  return std::sqrt(static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, squares))));
}

template <Summary summary, typename Real>
void SummariseDimensionsAs(const DimensionRows<Real>& rows, std::int64_t dims, const MassSplit& mass,
                           const GainPriors& priors, QueryScalars& out) {
  constexpr bool everything = summary != Summary::plain, moments_of_others = summary == Summary::all;
  const Tag<Real> tag;
  const auto set = [&](double value) { return hn::Set(tag, static_cast<Real>(value)); };
  const auto first = set(mass.first), others = set(mass.others), strength = set(priors.strength);
  const auto prior = set(priors.strength * priors.variance), count = set(mass.n_eff + priors.strength),
             count_others = set(mass.n_eff_others + priors.strength);
  const auto zero = hn::Zero(tag), inverse_size = hn::Set(tag, 1 / rows.size);
  DimensionSums<Real> all{zero, zero, zero, zero, zero, zero, zero}, without_first = all;
  for (std::int64_t i = 0; i < dims; i += static_cast<std::int64_t>(hn::Lanes(tag))) {
    const auto inside = hn::FirstN(tag, static_cast<std::size_t>(dims - i));
    const auto add = [&](auto& sum, auto term) { sum = hn::Add(sum, hn::IfThenElseZero(inside, term)); };
    const auto offset = hn::Load(tag, rows.offset + i), spread_others = hn::Load(tag, rows.residual_others + i);
    const auto distance = hn::Sub(hn::Load(tag, rows.first_offset + i), offset);
    const auto pull = hn::Mul(first, distance);
    const auto spread = hn::Mul(others, hn::MulAdd(pull, distance, spread_others));
    const auto centre = hn::Load(tag, rows.centre + i), unit = hn::Load(tag, rows.unit + i);
    // Two products, since unit^2 may underflow or overflow.
    const auto squared_unit = [&](auto scaled) HWY_ATTR { return hn::Mul(hn::Mul(scaled, unit), unit); };
    const auto residual = squared_unit(spread);
    const auto estimate = hn::MulAdd(hn::Add(offset, pull), unit, centre);
    hn::Store(estimate, tag, rows.estimate + i);
    hn::Store(residual, tag, rows.residual + i);

    const auto lambda = hn::Load(tag, rows.prior_precision + i);
    const auto variance = hn::Add(residual, prior);
    const auto precision = hn::Div(count, variance);
    hn::Store(precision, tag, rows.precision + i);
    add(all.residual, residual);
    add(all.precision, precision);
    const auto gain = hn::Div(count, hn::MulAdd(lambda, variance, count));
    add(all.gain, gain);
    if constexpr (everything) {
      const auto log = hn::Log(tag, variance);
      add(all.log_variance, hn::IfThenElse(hn::Eq(variance, zero), set(-std::numeric_limits<double>::infinity()), log));
      const auto relative = hn::Mul(estimate, inverse_size), gained = hn::Mul(gain, relative);
      add(all.squares, hn::Mul(relative, relative));
      add(all.gained_squares, hn::Mul(gained, gained));
      const auto variance_scaled = hn::MulAdd(spread, hn::Load(tag, rows.inverse_variance + i), strength);
      add(all.gain_scaled, hn::Div(count, hn::MulAdd(lambda, variance_scaled, count)));
      const auto residual_others = squared_unit(spread_others);
      const auto variance_others = hn::Add(residual_others, prior);
      const auto relative_others = hn::Mul(hn::MulAdd(offset, unit, centre), inverse_size);
      if constexpr (moments_of_others) {
        add(without_first.residual, residual_others);
        add(without_first.precision, hn::Div(count_others, variance_others));
      }
      add(without_first.squares, hn::Mul(relative_others, relative_others));
      add(without_first.gain, hn::Div(count_others, hn::MulAdd(lambda, variance_others, count_others)));
    }
  }
  out.n_eff = mass.n_eff;
  out.residual = MeanOfLanes<Real>(all.residual, dims);
  out.observation_precision = MeanOfLanes<Real>(all.precision, dims);
  out.kalman_gain = MeanOfLanes<Real>(all.gain, dims);
  if constexpr (everything) {
    out.log_observation_precision = std::log(mass.n_eff + priors.strength) - MeanOfLanes<Real>(all.log_variance, dims);
    out.kalman_gain_scaled = MeanOfLanes<Real>(all.gain_scaled, dims);
    const auto size = static_cast<double>(rows.size);
    out.estimate_norm = size * RootOfLanes<Real>(all.squares);
    out.gained_estimate_norm = size * RootOfLanes<Real>(all.gained_squares);
    if (std::isnan(mass.n_eff_others)) return;
    out.without_first_n_eff = mass.n_eff_others;
    if constexpr (moments_of_others) {
      out.without_first_residual = MeanOfLanes<Real>(without_first.residual, dims);
      out.without_first_observation_precision = MeanOfLanes<Real>(without_first.precision, dims);
    }
    out.without_first_kalman_gain = MeanOfLanes<Real>(without_first.gain, dims);
    out.without_first_norm = size * RootOfLanes<Real>(without_first.squares);
  }
}

template <typename Real>
void SummariseDimensions(Summary summary, const DimensionRows<Real>& rows, std::int64_t dims, const MassSplit& mass,
                         const GainPriors& priors, QueryScalars& out) {
  switch (summary) {
    case Summary::plain:
      return SummariseDimensionsAs<Summary::plain>(rows, dims, mass, priors, out);
    case Summary::all_but_without_first_moments:
      return SummariseDimensionsAs<Summary::all_but_without_first_moments>(rows, dims, mass, priors, out);
    case Summary::all:
      return SummariseDimensionsAs<Summary::all>(rows, dims, mass, priors, out);
  }
}

template <typename Real>
constexpr RowKernels<Real> row_kernels_table = {
    .cap_scores = CapScores<Real>,
    .absorb_scores = AbsorbScores<Real>,
    .masses_of_first = MassesOfFirst<Real>,
    .add_scaled = AddScaled<Real>,
    .scores_of_key = ScoresOfKey<Real>,
    .sum_of_weights = SumOfWeights<Real>,
    .moments_from_sums = MomentsFromSums<Real>,
    .two_pass_moments = TwoPassMoments<Real>,
    .summarise_dimensions = SummariseDimensions<Real>,
};

}  // namespace gainlens::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

GAINLENS_VECTOR_TABLE_FOR(RowKernels, row_kernels, float)
GAINLENS_VECTOR_TABLE_FOR(RowKernels, row_kernels, double)
