#include "calibration/binomial_level.h"
#include "calibration/made_up_runs.h"
#include "calibration/simulation.h"
#include "calibration/theory_simulation.h"

#include <gtest/gtest.h>

namespace gainlens::testing {
namespace calibration_test {

ClusteredModel strongly_clustered() {
  return {.layers = 12, .heads = 8, .group_size = 2, .layer_share = 0.5, .group_share = 0.4};
}

TEST(Calibration, NaivePRejectsFarTooOftenAndBlocksAtTheirLevel) {
  constexpr std::int64_t simulations = 300;
  const RejectionRates rates = rejection_rates(strongly_clustered(), simulations, 199, 1);
  EXPECT_GT(rates.naive_pooled, 0.3);
  EXPECT_GT(rates.naive_within, 0.1);  // heads of one KV group are not independent
  EXPECT_TRUE(is_at_level(rates.block_permutation, simulations));
}

TEST(Calibration, IndependentHeadsNeedNoCorrection) {
  constexpr std::int64_t simulations = 300;
  const RejectionRates rates = rejection_rates({.layers = 24, .heads = 4, .group_size = 1}, simulations, 199, 2);
  EXPECT_TRUE(is_at_level(rates.naive_pooled, simulations));
  EXPECT_TRUE(is_at_level(rates.naive_within, simulations));
  EXPECT_TRUE(is_at_level(rates.block_permutation, simulations));
}

TEST(Calibration, ARealEffectIsFound) {
  ClusteredModel model = strongly_clustered();
  model.effect = 0.5;
  EXPECT_GT(rejection_rates(model, 100, 199, 3).block_permutation, 0.8);
}

ClusteredModel with_slots(double effect) {
  return {.layers = 20,
          .heads = 8,
          .group_size = 2,
          .layer_share = 0.2,
          .group_share = 0.1,
          .slot_share = 0.6,
          .effect = effect};
}

TEST(Calibration, SlotsOfKvGroupsLeaveTheLevelAndTheSign) {
  constexpr std::int64_t simulations = 300;
  const RejectionRates nothing = rejection_rates(with_slots(0), simulations, 199, 7);
  EXPECT_GT(nothing.naive_within, 0.9);  // x and y share the slots
  EXPECT_TRUE(is_at_level(nothing.block_permutation, simulations));
  EXPECT_TRUE(is_at_level(nothing.circular_shift, simulations));
  EXPECT_LT(nothing.block_sign, 0.05);       // both signs are equally frequent
  for (const double effect : {-0.7, 0.7}) {  // a test centred on 0 would never find the negative effect
    const RejectionRates found = rejection_rates(with_slots(effect), 100, 199, 8);
    EXPECT_GT(found.block_sign, 0.8) << effect;
    EXPECT_EQ(found.block_sign, found.block_permutation) << effect;
  }
}

/// 32 layers of 4 heads on one KV head, as in models with multi-query attention.
ClusteredModel one_kv_head(double drift, bool bent) {
  return {.layers = 32,
          .heads = 4,
          .group_size = 4,
          .layer_share = 0.8,
          .autocorrelation = 0,
          .drift = drift,
          .bent = bent};
}

TEST(Calibration, AShiftTakesADriftForARelationEvenWithoutItsLine) {
  constexpr std::int64_t simulations = 300;
  const RejectionRates still = rejection_rates(one_kv_head(0, false), simulations, 19, 11),
                       line = rejection_rates(one_kv_head(5.7, false), simulations, 19, 12),
                       bent = rejection_rates(one_kv_head(5.7, true), simulations, 19, 13);
  EXPECT_TRUE(is_at_level(still.circular_shift, simulations));
  EXPECT_GT(line.circular_shift, 0.7);
  EXPECT_TRUE(is_at_level(line.shift_without_line, simulations));
  EXPECT_GT(bent.shift_without_line, 0.15);  // so a line taken off is no remedy
  EXPECT_EQ(line.block_permutation, 0);      // it refuses
}

TEST(Calibration, UnrelatedRunsThatDriftAreNotSupported) {
  const auto one = rule_on_made_up_runs({.runs = 5, .drift = 5.7});
  EXPECT_EQ(one.at(analyses::Ruling::not_decidable), 5u);
  const auto four = rule_on_made_up_runs({.runs = 20, .kv_heads = 4, .drift = 5.7});
  EXPECT_GE(four.at(analyses::Ruling::not_shown), 17u);  // the block permutation does not see what layers share
}

TEST(Calibration, TheoryRulingsAreAtTheirLevel) {
  constexpr std::int64_t simulations = 2000;
  constexpr double most =
      0.07;  // 5%; 6% with the skewness that n_eff and S have here; plus twice the error of 2,000 simulations
  for (const std::size_t chunks : {std::size_t{3}, std::size_t{5}, std::size_t{10}, std::size_t{20}}) {
    const TheoryRates one = theory_rates({.chunks = chunks, .error = simulated_margin}, simulations, 4000 + chunks);
    const TheoryRates every =
        theory_rates({.chunks = chunks, .error = simulated_margin, .every_length = true}, simulations, 4000 + chunks);
    EXPECT_LT(one.within, most) << chunks;
    EXPECT_LT(every.beyond, most) << chunks;
  }
  EXPECT_GT(theory_rates({.chunks = 20}, 200, 1).within, 0.9);  // and more chunks show more, not less
  EXPECT_GT(theory_rates({.chunks = 10, .error = 4 * simulated_margin}, 200, 2).beyond, 0.9);
}

TEST(Calibration, EquivalenceAtTheMarginIsClaimedAtItsLevel) {
  constexpr std::int64_t simulations = 2000;
  EXPECT_TRUE(is_at_level(equivalence_rates(1.0, 0.3, 5, simulations, 4).equivalent, simulations));
  EXPECT_GT(equivalence_rates(0.0, 0.3, 5, simulations, 5).equivalent, 0.95);
  EXPECT_GT(equivalence_rates(3.0, 0.3, 5, simulations, 6).changes, 0.95);
}

TEST(Calibration, TheSeedFixesEverything) {
  const RejectionRates once = rejection_rates(strongly_clustered(), 20, 99, 9),
                       again = rejection_rates(strongly_clustered(), 20, 99, 9);
  EXPECT_EQ(once.naive_pooled, again.naive_pooled);
  EXPECT_EQ(once.block_permutation, again.block_permutation);
}

}  // namespace calibration_test
}  // namespace gainlens::testing
