#pragma once

#include "analyses/permutation.h"
#include "core/random.h"

#include <cstddef>
#include <vector>

namespace gainlens::testing {

/// How the heads of a simulated model depend on each other. x and y are sums of four terms: an effect of the layer
/// (first-order autoregressive along the depth), of the KV group and of the slot in the group, and noise of the head.
/// The variances of the four add up to 1. The slots have the same effect in x and y. Without `effect`, the other terms
/// of x and y are independent, so that every other relation is chance.
struct ClusteredModel {
  std::size_t layers = 28;  ///< 28 x 16 heads, as in the paper's model
  std::size_t heads = 16;
  std::size_t group_size = 2;    ///< query heads per KV head
  double layer_share = 0;        ///< share of the variance
  double group_share = 0;        ///< share of the variance
  double slot_share = 0;         ///< share of the variance; the effect of a slot is the same in all layers and groups
  double autocorrelation = 0.7;  ///< correlation between the effects of neighbouring layers
  double effect = 0;             ///< y gets this times the part of x without the effects of layer and slot
  /// A drift with depth that x and y have in common: its range from the first to the last layer, in standard deviations
  /// of the layers' effects.
  double drift = 0;
  bool bent = false;  ///< the drift is exponential and ends within the first quarter of the layers; else it is a line
};

/// A standard normal number, by the polar form of Box and Muller's method.
double normal(Random& random);

analyses::ClusteredPairs simulate(const ClusteredModel& model, Random& random);

/// How often each test of a correlation over heads rejects at level 0.05.
struct RejectionRates {
  double naive_pooled = 0;       ///< Student t of Pearson's r over all heads
  double naive_within = 0;       ///< Student t of Pearson's r within layers
  double block_permutation = 0;  ///< the test that decides
  double circular_shift = 0;     ///< the test that decides if block permutations are refused
  /// Rate at which block permutations reject with the sign of the effect (without an effect: with a positive sign).
  double block_sign = 0;
  double shift_sign = 0;  ///< as block_sign, for circular shifts
  /// Circular shifts of x and y less their straight lines over depth.
  double shift_without_line = 0;
};

/// @param permutations  random arrangements in each block permutation test
RejectionRates rejection_rates(const ClusteredModel& model, std::int64_t simulations, std::int64_t permutations,
                               std::uint64_t seed);

/// The results of `simulations` equivalence tests of normal paired differences.
struct EquivalenceRates {
  double equivalent = 0;  ///< share of tests that find equivalence to flat
  double changes = 0;     ///< share of tests that find a change
};

/// @param mean, deviation  mean and standard deviation of a difference, in units of the margin
EquivalenceRates equivalence_rates(double mean, double deviation, std::size_t pairs, std::int64_t simulations,
                                   std::uint64_t seed);

}  // namespace gainlens::testing
