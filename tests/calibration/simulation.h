#pragma once

#include "analyses/permutation.h"
#include "core/random.h"

#include <cstddef>
#include <vector>

namespace gainlens::testing {

/// How heads of a simulated model depend on each other. x and y are made of a layer effect (first-order autoregressive
/// along the depth), an effect of the KV group, one of the slot in the group and noise of the head; without `effect`
/// those of x and y are independent but for the slots', so that every other relation is chance. Variances of the four
/// add up to 1.
struct ClusteredModel {
  std::size_t layers = 28;  ///< as the paper's model: 28 x 16 heads
  std::size_t heads = 16;
  std::size_t group_size = 2;  ///< query heads of a KV head
  double layer_share = 0;      ///< of the variance
  double group_share = 0;      ///< of the variance
  double slot_share = 0;       ///< of the variance; slots have one effect in all layers and groups, the same in x and y
  double autocorrelation = 0.7;  ///< between neighbouring layers' effects
  double effect = 0;             ///< y gains this times what of x is neither the layer's nor the slot's
};

/// Standard normal, by Box and Muller's polar form.
double normal(Random& random);

analyses::ClusteredPairs simulate(const ClusteredModel& model, Random& random);

/// How often each way of judging a correlation of heads rejects at level 0.05.
struct RejectionRates {
  double naive_pooled = 0;       ///< Student t of Pearson over all heads
  double naive_within = 0;       ///< the same within layers
  double block_permutation = 0;  ///< our decision
  double circular_shift = 0;     ///< used where the former is refused
  double block_sign =
      0;  ///< block permutations that reject with the sign of the effect; without an effect with a positive one
  double shift_sign = 0;  ///< the same of circular shifts
};

/// @param permutations  draws of each block permutation
RejectionRates rejection_rates(const ClusteredModel& model, std::int64_t simulations, std::int64_t permutations,
                               std::uint64_t seed);

/// What `simulations` equivalence tests say of normal paired differences.
struct EquivalenceRates {
  double equivalent = 0;  ///< share that is called equivalent to flat
  double changes = 0;     ///< share that is called a change
};

/// @param mean, deviation  of a difference, in units of the margin
EquivalenceRates equivalence_rates(double mean, double deviation, std::size_t pairs, std::int64_t simulations,
                                   std::uint64_t seed);

}  // namespace gainlens::testing
