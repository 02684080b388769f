#include "calibration/theory_simulation.h"
#include "analyses/gain_theory.h"

#include "analyses/holm.h"
#include "analyses/permutation.h"
#include "calibration/simulation.h"
#include "core/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace gainlens::testing {
namespace {

using analyses::GainMeans;

constexpr std::array n_eff = {10.0, 16.0, 25.0, 40.0};  // by length
constexpr double residual = 0.4, prior_variance = 0.25, prior_precision = 9;
constexpr double noise = 0.1,
                 gain_noise = 0.02;  // deviations of ln n_eff and ln S, and the additional deviation of logit K

/// A chunk's values at one length.
/// @param draws  three standard normals
/// @param shift  shift of logit K away from the formula
GainMeans chunk(std::size_t length, const std::array<double, 3>& draws, double shift) {
  GainMeans means{n_eff[length] * std::exp(noise * draws[0]), residual * std::exp(noise * draws[1]), 0};
  const double logit =
      std::log(analyses::aggregated_precision(means, prior_variance) / prior_precision) + shift + gain_noise * draws[2];
  means.gain = 1 / (1 + std::exp(-logit));
  return means;
}

/// Means of one length over very many chunks.
GainMeans limit(std::size_t length, double shift) {
  constexpr int draws = 5'000;  // each with its mirror image, so that only the curvature of the means depends on chance
  Random random(1, length);
  GainMeans sum{0, 0, 0};
  for (int i = 0; i < draws; ++i) {
    const std::array<double, 3> one = {normal(random), normal(random), normal(random)},
                                mirrored = {-one[0], -one[1], -one[2]};
    for (const auto& each : {one, mirrored}) {
      const GainMeans means = chunk(length, each, shift);
      sum.n_eff += means.n_eff / (2 * draws);
      sum.residual += means.residual / (2 * draws);
      sum.gain += means.gain / (2 * draws);
    }
  }
  return sum;
}

/// The shift of logit K at which the formula, fitted at the shortest length, is off by `error`.
double shift_for(std::size_t length, double error) {
  const double lambda = *analyses::fitted_prior_precision(limit(0, 0), prior_variance);
  double low = -2, high = 2;  // the larger K, the smaller the prediction
  for (int step = 0; step < 30; ++step) {
    const double middle = (low + high) / 2;
    const GainMeans means = limit(length, middle);
    (analyses::predicted_gain(means, prior_variance, lambda) / means.gain - 1 > error ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// Three standard normal numbers for each chunk, each a first-order autoregression over the chunks.
std::vector<std::array<double, 3>> neighbours(const TheoryModel& model, Random& random) {
  std::vector<std::array<double, 3>> values(model.chunks);
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t part = 0; part < 3; ++part) {
      const double fresh = normal(random);
      values[i][part] = i == 0 ? fresh
                               : model.correlation * values[i - 1][part] +
                                     std::sqrt(1 - model.correlation * model.correlation) * fresh;
    }
  }
  return values;
}

std::vector<std::vector<GainMeans>> simulate(const TheoryModel& model, const std::vector<double>& shifts,
                                             Random& random) {
  const auto shared = neighbours(model, random);
  std::vector<std::vector<GainMeans>> values;
  for (std::size_t length = 0; length < n_eff.size(); ++length) {
    const auto own = neighbours(model, random);
    values.emplace_back();
    for (std::size_t i = 0; i < model.chunks; ++i) {
      std::array<double, 3> draws;
      for (std::size_t part = 0; part < 3; ++part) draws[part] = std::sqrt(0.5) * (shared[i][part] + own[i][part]);
      values.back().push_back(chunk(length, draws, shifts[length]));
    }
  }
  return values;
}

}  // namespace

TheoryRates theory_rates(const TheoryModel& model, std::int64_t simulations, std::uint64_t seed) {
  std::vector<double> shifts = {0};
  std::vector<std::int64_t> tokens = {1};
  for (std::size_t length = 1; length < n_eff.size(); ++length) {
    const bool off = model.every_length || length + 1 == n_eff.size();
    shifts.push_back(shift_for(length, off ? model.error : 0));
    tokens.push_back(static_cast<std::int64_t>(length + 1));
  }
  TheoryRates rates;
  const double unit = 1 / static_cast<double>(simulations);
  for (std::int64_t i = 0; i < simulations; ++i) {
    Random random(seed, static_cast<std::uint64_t>(i));
    const auto test = analyses::test_theory(simulate(model, shifts, random), tokens, prior_variance, simulated_margin);
    std::vector<double> beyond;
    bool within = true;
    for (const analyses::TheoryError& length : test->lengths) {
      within = within && *length.log_ratio.p <= analyses::significance;
      beyond.push_back(*length.log_ratio.exceeds_p);
    }
    const std::vector<double> adjusted = analyses::holm(beyond);
    rates.within += within ? unit : 0;
    rates.beyond += *std::min_element(adjusted.begin(), adjusted.end()) <= analyses::significance ? unit : 0;
  }
  return rates;
}

}  // namespace gainlens::testing
