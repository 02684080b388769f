#include "kernels/row_kernels.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/row_kernels.cpp"
// Highway wants its headers in this order.
// clang-format off
#include "hwy/foreach_target.h"  // includes this file once for each instruction set
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace gainlens::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Vectors of at most row_alignment bytes: padded rows hold a whole number of them.
template <typename Real>
using Tag = hn::CappedTag<Real, row_alignment / sizeof(Real)>;

template <typename Real>
void CapScores(Real* HWY_RESTRICT scores, std::int64_t count, Real cap) {
  const Tag<Real> tag;
  const auto factor = hn::Set(tag, cap), inverse = hn::Set(tag, 1 / cap);
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(tag))) {
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

/// Brings sums and accumulators to a larger maximum.
template <typename Real>
void Rescale(SoftmaxSums& sums, double maximum, Real* HWY_RESTRICT accumulators, std::int64_t width) {
  const bool empty = sums.total == 0;  // maximum - maximum would be -inf, and 0 times it NaN
  const double shift = empty ? 0 : sums.maximum - maximum;
  const double ratio = empty ? 0 : std::exp(shift);
  sums.weighted_score = ratio * (sums.weighted_score + shift * sums.total);
  sums.total *= ratio;
  sums.total_squares *= ratio * ratio;
  sums.maximum = maximum;
  const Tag<Real> tag;
  const auto factor = hn::Set(tag, static_cast<Real>(ratio));
  for (std::int64_t i = 0; i < width; i += static_cast<std::int64_t>(hn::Lanes(tag))) {
    hn::Store(hn::Mul(hn::Load(tag, accumulators + i), factor), tag, accumulators + i);
  }
}

template <typename Real>
void AbsorbScores(SoftmaxSums& sums, Real* HWY_RESTRICT scores, std::int64_t begin, std::int64_t end, std::int64_t columns,
                  Real* HWY_RESTRICT accumulators, std::int64_t width) {
  const Tag<Real> tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  const std::int64_t first = begin - begin % lanes, last = (end + lanes - 1) / lanes * lanes;
  std::fill(scores + first, scores + begin, -std::numeric_limits<Real>::infinity());
  std::fill(scores + end, scores + last, -std::numeric_limits<Real>::infinity());
  const double largest = LargestScore(scores, first, last);
  if (largest > sums.maximum) Rescale(sums, largest, accumulators, width);
  if (sums.total == 0 && largest == -std::numeric_limits<double>::infinity()) {  // no key seen so far
    std::fill(scores, scores + columns, Real{0});
    return;
  }

  // Differences are bounded below so that a hidden key gives 0 * finite, not 0 * -inf; exp is exactly 0 there.
  const auto lowest = hn::Set(tag, static_cast<Real>(sizeof(Real) == 4 ? -200 : -1000));
  const auto maximum = hn::Set(tag, static_cast<Real>(sums.maximum));
  auto total = hn::Zero(tag), total_squares = hn::Zero(tag), weighted_score = hn::Zero(tag);
  for (std::int64_t i = first; i < last; i += lanes) {
    const auto difference = hn::Max(hn::Sub(hn::Load(tag, scores + i), maximum), lowest);
    const auto weight = hn::Exp(tag, difference);
    hn::Store(weight, tag, scores + i);
    total = hn::Add(total, weight);
    total_squares = hn::MulAdd(weight, weight, total_squares);
    weighted_score = hn::MulAdd(weight, difference, weighted_score);
  }
  sums.total += static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, total)));
  sums.total_squares += static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, total_squares)));
  sums.weighted_score += static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, weighted_score)));
  std::fill(scores, scores + first, Real{0});
  if (last < columns) std::fill(scores + last, scores + columns, Real{0});
}

template <typename Real>
void MomentsOfOthers(const Real* HWY_RESTRICT accumulators, std::int64_t dims, Real inverse_total, Real* HWY_RESTRICT offset,
                     Real* HWY_RESTRICT residual) {
  const Tag<Real> tag;
  const auto factor = hn::Set(tag, inverse_total);
  const Real* squares = accumulators + padded<Real>(dims);
  for (std::int64_t i = 0; i < dims; i += static_cast<std::int64_t>(hn::Lanes(tag))) {
    const auto mean = hn::Mul(hn::Load(tag, accumulators + i), factor);
    const auto spread = hn::NegMulAdd(mean, mean, hn::Mul(hn::Load(tag, squares + i), factor));
    hn::Store(mean, tag, offset + i);
    hn::Store(hn::Max(spread, hn::Zero(tag)), tag, residual + i);
  }
}

/// Sums over dimensions, one for each lane.
template <typename Real>
struct DimensionSums {
  using Vector = hn::Vec<Tag<Real>>;
  Vector residual, precision, log_variance, gain, gain_scaled;  // log_variance: of S + nu sigma0^2
  Vector squares, gained_squares;                               // of e and of K o e
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

template <typename Real>
void SummariseDimensions(const DimensionRows<Real>& rows, std::int64_t dims, const MassSplit& mass, const GainPriors& priors,
                         QueryScalars& out) {
  const Tag<Real> tag;
  const auto set = [&](double value) { return hn::Set(tag, static_cast<Real>(value)); };
  const auto first = set(mass.first), others = set(mass.others), strength = set(priors.strength), lambda = set(priors.precision);
  const auto prior = set(priors.strength * priors.variance), count = set(mass.n_eff + priors.strength),
             count_others = set(mass.n_eff_others + priors.strength);
  const auto zero = hn::Zero(tag);
  DimensionSums<Real> all{zero, zero, zero, zero, zero, zero, zero}, without_first = all;
  for (std::int64_t i = 0; i < dims; i += static_cast<std::int64_t>(hn::Lanes(tag))) {
    const auto inside = hn::FirstN(tag, static_cast<std::size_t>(dims - i));
    const auto add = [&](auto& sum, auto term) { sum = hn::Add(sum, hn::IfThenElseZero(inside, term)); };
    const auto offset = hn::Load(tag, rows.offset + i), residual_others = hn::Load(tag, rows.residual_others + i);
    const auto distance = hn::Sub(hn::Load(tag, rows.first_offset + i), offset);
    const auto pull = hn::Mul(first, distance);
    const auto residual = hn::Mul(others, hn::MulAdd(pull, distance, residual_others));
    const auto centre = hn::Load(tag, rows.centre + i);
    const auto estimate = hn::Add(centre, hn::Add(offset, pull)), estimate_others = hn::Add(centre, offset);
    hn::Store(estimate, tag, rows.estimate + i);
    hn::Store(residual, tag, rows.residual + i);

    const auto variance = hn::Add(residual, prior), variance_others = hn::Add(residual_others, prior);
    const auto precision = hn::Div(count, variance);
    hn::Store(precision, tag, rows.precision + i);
    add(all.residual, residual);
    add(all.precision, precision);
    const auto log = hn::Log(tag, variance);
    add(all.log_variance, hn::IfThenElse(hn::Eq(variance, zero), set(-std::numeric_limits<double>::infinity()), log));
    const auto gain = hn::Div(count, hn::MulAdd(lambda, variance, count)), gained = hn::Mul(gain, estimate);
    add(all.gain, gain);
    add(all.squares, hn::Mul(estimate, estimate));
    add(all.gained_squares, hn::Mul(gained, gained));
    const auto variance_scaled = hn::MulAdd(residual, hn::Load(tag, rows.inverse_variance + i), strength);
    add(all.gain_scaled, hn::Div(count, hn::MulAdd(lambda, variance_scaled, count)));
    add(without_first.residual, residual_others);
    add(without_first.precision, hn::Div(count_others, variance_others));
    add(without_first.squares, hn::Mul(estimate_others, estimate_others));
    add(without_first.gain, hn::Div(count_others, hn::MulAdd(lambda, variance_others, count_others)));
  }
  out.n_eff = mass.n_eff;
  out.residual = MeanOfLanes<Real>(all.residual, dims);
  out.observation_precision = MeanOfLanes<Real>(all.precision, dims);
  out.log_observation_precision = std::log(mass.n_eff + priors.strength) - MeanOfLanes<Real>(all.log_variance, dims);
  out.kalman_gain = MeanOfLanes<Real>(all.gain, dims);
  out.kalman_gain_scaled = MeanOfLanes<Real>(all.gain_scaled, dims);
  out.estimate_norm = RootOfLanes<Real>(all.squares);
  out.gained_estimate_norm = RootOfLanes<Real>(all.gained_squares);
  if (std::isnan(mass.n_eff_others)) return;
  out.without_first_n_eff = mass.n_eff_others;
  out.without_first_residual = MeanOfLanes<Real>(without_first.residual, dims);
  out.without_first_observation_precision = MeanOfLanes<Real>(without_first.precision, dims);
  out.without_first_kalman_gain = MeanOfLanes<Real>(without_first.gain, dims);
  out.without_first_norm = RootOfLanes<Real>(without_first.squares);
}

// Highway's dispatch tables take plain functions only.
#define GAINLENS_ROW_KERNELS(Real, Suffix)                                                                                              \
  void CapScores##Suffix(Real* scores, std::int64_t count, Real cap) {                                                                  \
    CapScores<Real>(scores, count, cap);                                                                                                \
  }                                                                                                                                     \
  void AbsorbScores##Suffix(SoftmaxSums& sums, Real* scores, std::int64_t begin, std::int64_t end, std::int64_t columns,                \
                            Real* accumulators, std::int64_t width) {                                                                   \
    AbsorbScores<Real>(sums, scores, begin, end, columns, accumulators, width);                                                         \
  }                                                                                                                                     \
  void MomentsOfOthers##Suffix(const Real* accumulators, std::int64_t dims, Real inverse_total, Real* offset, Real* residual) {         \
    MomentsOfOthers<Real>(accumulators, dims, inverse_total, offset, residual);                                                         \
  }                                                                                                                                     \
  void SummariseDimensions##Suffix(const DimensionRows<Real>& rows, std::int64_t dims, const MassSplit& mass, const GainPriors& priors, \
                                   QueryScalars& out) {                                                                                 \
    SummariseDimensions<Real>(rows, dims, mass, priors, out);                                                                           \
  }
GAINLENS_ROW_KERNELS(float, F32)
GAINLENS_ROW_KERNELS(double, F64)
#undef GAINLENS_ROW_KERNELS

}  // namespace gainlens::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gainlens::kernels {

#define GAINLENS_ROW_KERNELS(Real, Suffix)                                                                                            \
  HWY_EXPORT(CapScores##Suffix);                                                                                                      \
  HWY_EXPORT(AbsorbScores##Suffix);                                                                                                   \
  HWY_EXPORT(MomentsOfOthers##Suffix);                                                                                                \
  HWY_EXPORT(SummariseDimensions##Suffix);                                                                                            \
  template <>                                                                                                                         \
  void cap_scores(Real* scores, std::int64_t count, Real cap) {                                                                       \
    HWY_DYNAMIC_DISPATCH(CapScores##Suffix)(scores, count, cap);                                                                      \
  }                                                                                                                                   \
  template <>                                                                                                                         \
  void absorb_scores(SoftmaxSums& sums, Real* scores, std::int64_t begin, std::int64_t end, std::int64_t columns, Real* accumulators, \
                     std::int64_t width) {                                                                                            \
    HWY_DYNAMIC_DISPATCH(AbsorbScores##Suffix)(sums, scores, begin, end, columns, accumulators, width);                               \
  }                                                                                                                                   \
  template <>                                                                                                                         \
  void moments_of_others(const Real* accumulators, std::int64_t dims, Real inverse_total, Real* offset, Real* residual) {             \
    HWY_DYNAMIC_DISPATCH(MomentsOfOthers##Suffix)(accumulators, dims, inverse_total, offset, residual);                               \
  }                                                                                                                                   \
  template <>                                                                                                                         \
  void summarise_dimensions(const DimensionRows<Real>& rows, std::int64_t dims, const MassSplit& mass, const GainPriors& priors,      \
                            QueryScalars& out) {                                                                                      \
    HWY_DYNAMIC_DISPATCH(SummariseDimensions##Suffix)(rows, dims, mass, priors, out);                                                 \
  }
GAINLENS_ROW_KERNELS(float, F32)
GAINLENS_ROW_KERNELS(double, F64)
#undef GAINLENS_ROW_KERNELS

}  // namespace gainlens::kernels
#endif  // HWY_ONCE
