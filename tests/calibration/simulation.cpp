#include "calibration/simulation.h"

#include "analyses/equivalence.h"
#include "analyses/statistics.h"

#include <cmath>
#include <utility>

namespace gainlens::testing {
namespace {

/// Stationary first-order autoregression of variance 1.
std::vector<double> autoregression(std::size_t length, double correlation, Random& random) {
  std::vector<double> values;
  for (std::size_t i = 0; i < length; ++i) {
    values.push_back(i == 0 ? normal(random)
                            : correlation * values.back() + std::sqrt(1 - correlation * correlation) * normal(random));
  }
  return values;
}

/// One side of the pairs, split into the effect of the layer and the rest without the effects of layer and slot.
struct Side {
  std::vector<double> layer, rest;  // [point]
};

/// Effects of the slots, of mean 0 and variance 1.
std::vector<double> simulate_slots(const ClusteredModel& model, Random& random) {
  std::vector<double> slots(model.group_size, 0.0);
  if (model.slot_share == 0) return slots;
  for (double& slot : slots) slot = normal(random);
  const double middle = analyses::mean(slots), deviation = std::sqrt(analyses::population_variance(slots));
  for (double& slot : slots) slot = (slot - middle) / deviation;
  return slots;
}

Side simulate_side(const ClusteredModel& model, Random& random) {
  Side side;
  const double head_share = 1 - model.layer_share - model.group_share - model.slot_share;
  for (const double of_layer : autoregression(model.layers, model.autocorrelation, random)) {
    double of_group = 0;
    for (std::size_t head = 0; head < model.heads; ++head) {
      if (head % model.group_size == 0) of_group = normal(random);
      side.layer.push_back(std::sqrt(model.layer_share) * of_layer);
      side.rest.push_back(std::sqrt(model.group_share) * of_group + std::sqrt(head_share) * normal(random));
    }
  }
  return side;
}

/// The common drift at one layer.
double drift_at(const ClusteredModel& model, std::size_t layer) {
  const double depth = static_cast<double>(layer) / static_cast<double>(model.layers - 1);
  constexpr double steepness = 12;
  const double share = model.bent ? -std::expm1(-steepness * depth) / -std::expm1(-steepness) : depth;
  return model.drift * std::sqrt(model.layer_share) * share;
}

/// The values less their least-squares line over the layers.
std::vector<double> without_line(std::vector<double> values, const std::vector<std::size_t>& layer) {
  const std::vector<double> depth(layer.begin(), layer.end());
  const double middle = analyses::mean(depth), level = analyses::mean(values);
  double products = 0, squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    products += (depth[i] - middle) * (values[i] - level);
    squares += (depth[i] - middle) * (depth[i] - middle);
  }
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= level + products / squares * (depth[i] - middle);
  return values;
}

bool rejects(const analyses::Measured& p) {
  return p && *p <= analyses::significance;
}

}  // namespace

double normal(Random& random) {
  while (true) {
    const double x = 2 * random.uniform() - 1, y = 2 * random.uniform() - 1;
    const double square = x * x + y * y;
    if (square > 0 && square < 1) return x * std::sqrt(-2 * std::log(square) / square);
  }
}

analyses::ClusteredPairs simulate(const ClusteredModel& model, Random& random) {
  const std::vector<double> slots = simulate_slots(model, random);
  const Side x = simulate_side(model, random), y = simulate_side(model, random);
  analyses::ClusteredPairs pairs;
  pairs.group_size = model.group_size;
  for (std::size_t i = 0; i < x.layer.size(); ++i) {
    const double slot = std::sqrt(model.slot_share) * slots[i % model.heads % model.group_size];
    const double drift = drift_at(model, i / model.heads);
    pairs.x.push_back(x.layer[i] + slot + drift + x.rest[i]);
    pairs.y.push_back(y.layer[i] + slot + drift + y.rest[i] + model.effect * x.rest[i]);
    pairs.layer.push_back(i / model.heads);
    pairs.head.push_back(i % model.heads);
  }
  return pairs;
}

RejectionRates rejection_rates(const ClusteredModel& model, std::int64_t simulations, std::int64_t permutations,
                               std::uint64_t seed) {
  RejectionRates rates;
  const double unit = 1 / static_cast<double>(simulations);
  for (std::int64_t i = 0; i < simulations; ++i) {
    Random random(seed, static_cast<std::uint64_t>(i));
    const analyses::ClusteredPairs pairs = simulate(model, random);
    const analyses::Resampling resampling{.permutations = permutations, .seed = random.bits()};
    rates.naive_pooled += rejects(analyses::correlation(pairs.x, pairs.y).pearson_naive_p) ? unit : 0;
    rates.naive_within +=
        rejects(analyses::correlation_within(pairs.x, pairs.y, pairs.layer).pearson_naive_p) ? unit : 0;
    const analyses::TestedStatistic blocks = analyses::permute_blocks(pairs, resampling).pearson;
    const analyses::TestedStatistic shift = analyses::shift_layers(pairs, std::nullopt).pearson;
    const auto signed_right = [&](const analyses::TestedStatistic& test) {
      return rejects(test.p) && (*test.excess() > 0) == (model.effect >= 0);
    };
    rates.block_permutation += rejects(blocks.p) ? unit : 0;
    rates.circular_shift += rejects(shift.p) ? unit : 0;
    rates.block_sign += signed_right(blocks) ? unit : 0;
    rates.shift_sign += signed_right(shift) ? unit : 0;
    analyses::ClusteredPairs level = pairs;
    level.x = without_line(std::move(level.x), pairs.layer);
    level.y = without_line(std::move(level.y), pairs.layer);
    rates.shift_without_line += rejects(analyses::shift_layers(level, std::nullopt).pearson.p) ? unit : 0;
  }
  return rates;
}

EquivalenceRates equivalence_rates(double mean, double deviation, std::size_t pairs, std::int64_t simulations,
                                   std::uint64_t seed) {
  EquivalenceRates rates;
  Random random(seed);
  for (std::int64_t i = 0; i < simulations; ++i) {
    std::vector<double> differences(pairs);
    for (double& difference : differences) difference = mean + deviation * normal(random);
    const analyses::Flatness flatness = analyses::test_equivalence(differences, 1.0).flatness;
    rates.equivalent += flatness == analyses::Flatness::equivalent ? 1 / static_cast<double>(simulations) : 0;
    rates.changes += flatness == analyses::Flatness::changes ? 1 / static_cast<double>(simulations) : 0;
  }
  return rates;
}

}  // namespace gainlens::testing
