// The rule of the sink mass on simulated heads with and without sinks: the table of docs/analyses/sinks.md.

#include "analyses/sink_keys.h"
#include "runfile/shard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace gainlens::analyses {
namespace sink_mass_rule_test {

/// Weights of causal attention, [query][key].
using Weights = std::vector<std::vector<double>>;

/// Scores by chance, normal with this deviation: no key is favoured by many queries.
Weights without_sinks(std::size_t queries, double deviation, std::mt19937_64& random) {
  std::normal_distribution<double> score(0, deviation > 0 ? deviation : 1);
  Weights weights(queries);
  for (std::size_t t = 0; t < queries; ++t) {
    double sum = 0;
    for (std::size_t m = 0; m <= t; ++m) sum += weights[t].emplace_back(deviation > 0 ? std::exp(score(random)) : 1);
    for (double& weight : weights[t]) weight /= sum;
  }
  return weights;
}

/// The same, and `mass` of the attention shared by `keys` of the first quarter, unevenly.
Weights with_sinks(std::size_t queries, std::size_t keys, double mass, std::mt19937_64& random) {
  Weights weights = without_sinks(queries, 1, random);
  std::uniform_real_distribution<double> part(0.6, 1.4);
  std::vector<double> share(queries, 0);
  for (std::size_t i = 0; i < keys; ++i) share[i * queries / (4 * keys)] = part(random);
  for (std::size_t t = 0; t < queries; ++t) {
    double others = 0, sinks = 0;
    for (std::size_t m = 0; m <= t; ++m) (share[m] > 0 ? sinks : others) += share[m] > 0 ? share[m] : weights[t][m];
    for (std::size_t m = 0; m <= t; ++m) {
      weights[t][m] = share[m] > 0 ? share[m] / sinks * (others > 0 ? mass : 1) : weights[t][m] / others * (1 - mass);
    }
  }
  return weights;
}

/// Weight of the keys from this column mean on, as in a run: of those that enough queries see, over second-half
/// queries.
double mass_from(double least, const Weights& weights) {
  const std::size_t queries = weights.size(), half = (queries + 1) / 2;
  double mass = 0;
  for (std::size_t m = 0; m < queries; ++m) {
    double column = 0, late = 0;
    for (std::size_t t = m; t < queries; ++t) {
      column += weights[t][m];
      if (t >= half) late += weights[t][m];
    }
    const auto seen = static_cast<std::int64_t>(queries - m);
    if (seen < runfile::fewest_sink_queries(static_cast<std::int64_t>(queries))) continue;
    if (column / static_cast<double>(seen) >= least) mass += late / static_cast<double>(queries - half);
  }
  return mass;
}

constexpr int draws = 20;

TEST(SinkMassRule, IsNearNothingWithoutSinks) {
  std::mt19937_64 random(7);
  for (const std::size_t queries : {32u, 64u, 128u}) {
    for (const double deviation : {0.0, 1.0, 2.0}) {
      double by_rule = 0, from_a_tenth = 0;
      for (int i = 0; i < draws; ++i) {
        const Weights weights = without_sinks(queries, deviation, random);
        by_rule += mass_from(min_counted_mean(static_cast<std::int64_t>(queries)), weights) / draws;
        from_a_tenth += mass_from(runfile::min_stored_mean, weights) / draws;
      }
      EXPECT_LT(by_rule, 0.02) << queries << " " << deviation;
      if (queries == 32) {
        EXPECT_GT(from_a_tenth, 0.03) << deviation;  // what a run stores is not enough
      }
    }
  }
}

TEST(SinkMassRule, FindsTheWeightOfKeysThatShareIt) {
  std::mt19937_64 random(11);
  constexpr double mass = 0.6;
  for (const std::size_t keys : {1u, 2u, 3u, 4u}) {
    double by_rule = 0, of_sinks = 0;
    for (int i = 0; i < draws; ++i) {
      const Weights weights = with_sinks(256, keys, mass, random);
      by_rule += mass_from(min_counted_mean(256), weights) / draws;
      of_sinks += mass_from(column_mean_threshold, weights) / draws;
    }
    EXPECT_NEAR(by_rule / mass, 1, 0.05) << keys;
    if (keys > 2) {
      EXPECT_LT(of_sinks / mass, 0.3) << keys;  // the cliff
    }
  }
}

}  // namespace sink_mass_rule_test
}  // namespace gainlens::analyses
