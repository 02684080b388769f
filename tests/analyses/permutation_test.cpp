#include "analyses/permutation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::analyses {
namespace permutation_test {

using ::testing::HasSubstr;

/// [layer][head]
using Rows = std::vector<std::vector<double>>;

ClusteredPairs pairs_of(const Rows& x, const Rows& y, std::size_t group_size = 1) {
  ClusteredPairs pairs;
  pairs.group_size = group_size;
  for (std::size_t layer = 0; layer < x.size(); ++layer) {
    for (std::size_t head = 0; head < x[layer].size(); ++head) {
      pairs.x.push_back(x[layer][head]);
      pairs.y.push_back(y[layer][head]);
      pairs.layer.push_back(layer);
      pairs.head.push_back(head);
    }
  }
  return pairs;
}

/// Layers of two heads, the second of which has the larger x and y.
ClusteredPairs ordered_pairs(std::size_t layers) {
  const Rows rows(layers, {0.0, 1.0});
  return pairs_of(rows, rows);
}

TEST(BlockPermutation, LayersMayDifferInTheSizeOfTheirGroups) {
  // Four heads each: one group of four, which cannot be exchanged, then two of two, and four of one.
  const Rows rows(3, {0.0, 1.0, 2.0, 4.0});
  ClusteredPairs pairs = pairs_of(rows, rows, 1);
  EXPECT_EQ(permute_blocks(pairs, {}).arrangements, 24.0 * 24 * 24);
  pairs.layer_group_size = {4, 2, 1};
  EXPECT_EQ(permute_blocks(pairs, {}).arrangements, 2.0 * 24);
}

TEST(BlockPermutation, SixLayersOfTwoHeadsByHand) {
  // Only two of 2^6 arrangements reach |r| = 1: all layers as they are, and all layers mirrored.
  const PermutationTest test = permute_blocks(ordered_pairs(6), {});
  EXPECT_TRUE(test.exact);
  EXPECT_EQ(test.arrangements, 64);
  EXPECT_EQ(test.resamples, 64);
  EXPECT_DOUBLE_EQ(*test.pearson.value, 1);
  EXPECT_DOUBLE_EQ(*test.pearson.p, 2.0 / 64);
  EXPECT_DOUBLE_EQ(*test.pearson.min_p, 2.0 / 64);
  EXPECT_DOUBLE_EQ(*test.spearman.p, 2.0 / 64);
}

TEST(BlockPermutation, FourLayersOfTwoHeadsAreRefused) {
  const PermutationTest test = permute_blocks(ordered_pairs(4), {});
  EXPECT_DOUBLE_EQ(*test.pearson.min_p, 2.0 / 16);
  EXPECT_THAT(test.pearson.p.reason(), HasSubstr("not testable: with 16 permutations the smallest possible p is 0.12"));
  EXPECT_DOUBLE_EQ(*test.pearson.value, 1);  // the measured value is reported in any case
}

TEST(BlockPermutation, OneGroupALayerIsOneArrangement) {
  const PermutationTest test = permute_blocks(pairs_of(Rows(8, {0.0, 1.0}), Rows(8, {0.0, 1.0}), 2), {});
  EXPECT_EQ(test.arrangements, 1);
  EXPECT_DOUBLE_EQ(*test.pearson.min_p, 1);
  EXPECT_THAT(test.pearson.p.reason(), HasSubstr("not testable: it takes at least 2 KV heads in a layer"));
}

TEST(BlockPermutation, HeadsOfAGroupStayTogether) {
  // Two groups of two in one layer, as they are or exchanged. The y of head 1 (2) must never be paired with the x of
  // head 0.
  const PermutationTest test = permute_blocks(pairs_of({{0, 1, 5, 6}}, {{1, 2, 9, 7}}, 2), {});
  EXPECT_EQ(test.arrangements, 2);
}

TEST(BlockPermutation, LayerEffectsDoNotEnter) {
  const Rows x = {{0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}};
  Rows shifted = x;
  for (std::size_t layer = 0; layer < shifted.size(); ++layer) {
    for (double& value : shifted[layer]) value += 100 * static_cast<double>(layer);
  }
  EXPECT_NEAR(*permute_blocks(pairs_of(x, shifted), {}).pearson.value, 1, 1e-12);
  EXPECT_DOUBLE_EQ(*permute_blocks(pairs_of(x, shifted), {}).pearson.p, 2.0 / 64);
}

TEST(BlockPermutation, EqualBlocksAreOneArrangement) {
  // Three heads of equal y and one that differs: 4 distinct orders per layer, not 24.
  const PermutationTest test = permute_blocks(pairs_of({{1, 2, 3, 4}, {1, 2, 3, 4}}, {{0, 0, 0, 1}, {0, 0, 0, 1}}), {});
  EXPECT_EQ(test.arrangements, 16);
  EXPECT_DOUBLE_EQ(*test.pearson.min_p, 2.0 / 16);  // the 1 at the largest x in both layers, or at the smallest
}

TEST(BlockPermutation, EqualXCountsLikeEqualY) {
  // One head of twelve has a BOS mass: 12 arrangements per layer. Trying all orders of the twelve distinct K would take
  // 12!^2 steps.
  Rows few(2), all(2);
  for (std::size_t layer = 0; layer < 2; ++layer) {
    for (int head = 0; head < 12; ++head) {
      few[layer].push_back(head == 3 ? 1 : 0);
      all[layer].push_back(head == 3 ? 20 : head);
    }
  }
  const PermutationTest test = permute_blocks(pairs_of(few, all), {});
  EXPECT_EQ(test.arrangements, 144);
  EXPECT_DOUBLE_EQ(*test.pearson.p, 1.0 / 144);  // the largest K at the sink, in both layers
  EXPECT_DOUBLE_EQ(*permute_blocks(pairs_of(all, few), {}).pearson.p, 1.0 / 144);
}

/// A spread at rounding could follow x in every layer: neither values nor ranks may see it.
TEST(BlockPermutation, ASpreadAtRoundingIsNoSpread) {
  const PermutationTest test = permute_blocks(pairs_of(Rows(6, {0.0, 1.0}), Rows(6, {0.9, 0.9 + 1e-12})), {});
  EXPECT_THAT(test.pearson.p.reason(), HasSubstr("y is constant within layers"));
  EXPECT_THAT(test.spearman.p.reason(), HasSubstr("y is constant within layers"));
}

TEST(BlockPermutation, DrawnAgreesWithEnumerated) {
  Rows x, y;
  for (int layer = 0; layer < 3; ++layer) {
    x.push_back({std::sin(layer), std::sin(layer + 1.3), std::sin(layer + 3.1), std::sin(layer + 4.4)});
    y.push_back({std::sin(layer + 0.4), std::cos(layer + 2.0), std::sin(layer + 2.6), std::cos(5.0 * layer)});
  }
  const double exact = *permute_blocks(pairs_of(x, y), {.permutations = 24 * 24 * 24}).pearson.p;
  const PermutationTest drawn = permute_blocks(pairs_of(x, y), {.permutations = 9999, .seed = 3});
  EXPECT_FALSE(drawn.exact);
  EXPECT_EQ(drawn.resamples, 9999);
  EXPECT_NEAR(*drawn.pearson.p, exact, 4 * std::sqrt(exact * (1 - exact) / 9999));
  EXPECT_EQ(*drawn.pearson.p, *permute_blocks(pairs_of(x, y), {.permutations = 9999, .seed = 3}).pearson.p);
  EXPECT_NE(*drawn.pearson.p, *permute_blocks(pairs_of(x, y), {.permutations = 9999, .seed = 4}).pearson.p);
}

TEST(BlockPermutation, TooFewDrawsAreRefused) {
  const PermutationTest test = permute_blocks(ordered_pairs(30), {.permutations = 10});
  EXPECT_DOUBLE_EQ(*test.pearson.min_p, 1.0 / 11);
  EXPECT_THAT(test.pearson.p.reason(), HasSubstr("not testable"));
}

TEST(BlockPermutation, GroupWithoutAHeadTakesNoPart) {
  ClusteredPairs pairs = pairs_of(Rows(6, {0, 1, 2, 3, 4, 5}), Rows(6, {0, 1, 2, 3, 4, 5}), 2);
  EXPECT_EQ(permute_blocks(pairs, {}).arrangements, std::pow(6, 6));
  pairs.x.pop_back();  // the last head of the last layer
  pairs.y.pop_back();
  pairs.layer.pop_back();
  pairs.head.pop_back();
  EXPECT_EQ(permute_blocks(pairs, {}).arrangements, std::pow(6, 5) * 2);
}

TEST(BlockPermutation, ConstantWithinLayersIsNamed) {
  ClusteredPairs pairs = pairs_of({{0.1, 0.1}, {0.3, 0.3}}, {{1, 2}, {1, 2}});
  pairs.names = {"BOS mass", "K"};
  EXPECT_EQ(permute_blocks(pairs, {}).pearson.p.reason(), "BOS mass is constant within layers");
}

/// Twelve layers of four groups of two. The means of the two slots rise in x and in y, which gives r = +0.81 for every
/// pairing of groups. Apart from the slots, x and y of the groups are opposed.
ClusteredPairs opposed_groups_with_slots() {
  Rows x(12), y(12);
  for (std::size_t layer = 0; layer < 12; ++layer) {
    for (int head = 0; head < 8; ++head) {
      const double group = head / 2, slot = head % 2, depth = static_cast<double>(layer);
      const double own = std::sin(5 * depth + 3 * group * group + 2 * slot + 1.0);
      x[layer].push_back(2 * slot + 0.7 * own);
      y[layer].push_back(2 * slot - 0.3 * own + 0.7 * std::sin(11 * depth + 7 * group + 4 * slot * slot + 0.5));
    }
  }
  return pairs_of(x, y, 2);
}

TEST(BlockPermutation, IsCentredOnWhatTheSlotsOfGroupsShare) {
  // numpy: r = 0.72955; its mean over 9,999 arrangements is 0.809, and all of them have a larger |r|. A test centred on
  // 0 would find nothing.
  const PermutationTest test = permute_blocks(opposed_groups_with_slots(), {});
  EXPECT_NEAR(*test.pearson.value, 0.729546, 1e-6);
  EXPECT_NEAR(*test.pearson.null_mean, 0.808730, 1e-6);
  EXPECT_NEAR(*test.pearson.excess(), 0.729546 - 0.808730, 2e-6);
  EXPECT_LE(*test.pearson.p, 0.001);
  EXPECT_NEAR(*test.spearman.value, 0.650794, 1e-6);
  EXPECT_NEAR(*test.spearman.null_mean, 0.761905, 1e-6);
  EXPECT_LE(*test.spearman.p, 0.002);
}

TEST(BlockPermutation, GroupsOfOneHeadHaveNoSlots) {
  const PermutationTest test = permute_blocks(pairs_of({{0.1, 0.7, 0.4}, {0.3, 0.2, 0.9}}, {{1, 2, 5}, {3, 1, 2}}), {});
  EXPECT_EQ(*test.pearson.null_mean, 0);
  EXPECT_EQ(*test.spearman.null_mean, 0);
}

TEST(BlockPermutation, GroupsThatDifferInNothingButSlotsAreRefused) {
  // 0.1 and 0.7 in every group: r is the correlation of the slots, and no arrangement changes it.
  ClusteredPairs pairs = pairs_of(Rows(6, {0.1, 0.7, 0.1, 0.7, 0.1, 0.7}), Rows(6, {1, 2, 1, 4, 3, 2}), 2);
  pairs.names = {"BOS mass", "K"};
  const PermutationTest test = permute_blocks(pairs, {});
  EXPECT_EQ(test.pearson.p.reason(), "not testable: BOS mass does not differ between the KV groups of any layer");
  EXPECT_EQ(test.spearman.p.reason(), test.pearson.p.reason());
  EXPECT_EQ(*test.pearson.excess(), 0);
  EXPECT_GT(*test.pearson.value, 0);  // the measured value is reported in any case
}

TEST(BlockPermutation, ManyArrangementsAreCountedNoFurther) {
  Rows rows;
  for (int layer = 0; layer < 40; ++layer) {
    rows.emplace_back();
    for (int head = 0; head < 64; ++head) rows.back().push_back(std::sin(layer + 0.7 * head));
  }
  const PermutationTest test = permute_blocks(pairs_of(rows, rows), {.permutations = 99});
  EXPECT_EQ(test.arrangements, 1e300);  // 64!^40 is too large for a double
  EXPECT_DOUBLE_EQ(*test.pearson.p, 0.01);
  EXPECT_EQ(count_arrangements(test.arrangements), "1e300 or more permutations");
}

TEST(CircularShift, OneSinkLayerAmongTwenty) {
  Rows x(20, {0.0}), y(20, {0.0});
  x[7] = y[7] = {1.0};
  const PermutationTest test = shift_layers(pairs_of(x, y), std::nullopt);
  EXPECT_EQ(test.arrangements, 20);
  EXPECT_DOUBLE_EQ(*test.pearson.value, 1);
  EXPECT_DOUBLE_EQ(*test.pearson.p, 0.05);
}

TEST(CircularShift, NineteenLayersAreRefused) {
  Rows x(19, {0.0});
  x[7] = {1.0};
  const PermutationTest test = shift_layers(pairs_of(x, x), std::nullopt);
  EXPECT_DOUBLE_EQ(*test.pearson.min_p, 1.0 / 19);
  EXPECT_THAT(test.pearson.p.reason(), HasSubstr("with 19 permutations the smallest possible p is 0.053"));
}

TEST(CircularShift, RepeatingLayersTie) {
  Rows x;
  for (int layer = 0; layer < 40; ++layer) x.push_back({layer % 4 == 0 ? 1.0 : 0.0});
  EXPECT_DOUBLE_EQ(*shift_layers(pairs_of(x, x), std::nullopt).pearson.min_p,
                   0.25);  // every fourth shift gives the data again
}

TEST(CircularShift, IsCentredOnWhatHeadNumbersShare) {
  // The second head has the larger x and y in every layer: r is near 1 after every shift. Layer 7 is an outlier, in
  // opposite directions in x and y.
  Rows x(20, {0.0, 10.0}), y = x;
  x[7] = {1.0, 11.0};
  y[7] = {-1.0, 9.0};
  const PermutationTest test = shift_layers(pairs_of(x, y), std::nullopt);
  EXPECT_GT(*test.pearson.value, 0.99);
  EXPECT_LT(*test.pearson.excess(), 0);
  EXPECT_DOUBLE_EQ(*test.pearson.p, 0.05);  // only in one of the 20 shifts are the two outliers paired
}

TEST(CircularShift, LayersThatAreAllAlikeAreRefused) {
  ClusteredPairs pairs = pairs_of(Rows(24, {0.1, 0.7}), Rows(24, {0.3, 0.2}));
  pairs.names = {"BOS mass", "K"};
  EXPECT_EQ(shift_layers(pairs, std::nullopt).pearson.p.reason(), "not testable: BOS mass is the same in every layer");
}

TEST(CircularShift, RefusesWhatIsNoAxis) {
  const Rows rows(24, {0.0, 1.0});
  ClusteredPairs gap = pairs_of(rows, rows);
  for (std::size_t& layer : gap.layer) layer += layer > 10 ? 1 : 0;
  EXPECT_EQ(shift_layers(gap, std::nullopt).pearson.p.reason(), "not testable: the layers are not contiguous");
  ClusteredPairs hole = pairs_of(rows, rows);
  hole.x.pop_back(), hole.y.pop_back(), hole.layer.pop_back(), hole.head.pop_back();
  EXPECT_EQ(shift_layers(hole, std::nullopt).pearson.p.reason(),
            "not testable: a layer has no value for one of its heads");
  EXPECT_EQ(shift_layers(pairs_of(rows, rows), "two kinds").pearson.p.reason(), "not testable: two kinds");
  EXPECT_THAT(shift_layers({}, std::nullopt).pearson.p.reason(), HasSubstr("no head"));
}

TEST(PermutationJson, RefusalIsNullWithItsReason) {
  const OrderedJson json = to_json(permute_blocks(ordered_pairs(4), {.seed = 8}));
  EXPECT_TRUE(json["pearson"]["p"].is_null());
  EXPECT_THAT(json["pearson"]["p_reason"], HasSubstr("not testable"));
  EXPECT_EQ(json["distinct_arrangements"], 16);
  EXPECT_EQ(json["seed"], 8);
}

}  // namespace permutation_test
}  // namespace gainlens::analyses
