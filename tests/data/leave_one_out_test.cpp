#include "data/leave_one_out.h"

#include "core/sha256.h"
#include "data/strata.h"
#include "support/refusal.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::data {
namespace leave_one_out_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::refusal_of;

LeaveOneOut split_of(std::string_view sequences, std::int64_t least = 3) {
  const testing::TemporaryFolder folder;
  return LeaveOneOut(
      read_interactions(testing::write_file(folder.path() / "data", sequences), {.min_user_interactions = least}));
}

TEST(LeaveOneOutTest, TheLastTwoItemsAreHeldOut) {
  const LeaveOneOut split = split_of("a 1 2 3 4 2\nb 2 2 3\n");
  EXPECT_EQ(split.users(), 2);
  EXPECT_EQ(split.items(), 4);
  EXPECT_THAT(split.training(0), ElementsAre(1, 2, 3));
  EXPECT_THAT(split.history(0, HeldOut::validation).items, ElementsAre(1, 2, 3));
  EXPECT_THAT(split.history(0, HeldOut::test).items, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(split.target(0, HeldOut::validation), 4);
  EXPECT_EQ(split.target(0, HeldOut::test), 2);
  EXPECT_THAT(split.training(1), ElementsAre(2));
  EXPECT_EQ(split.target(1, HeldOut::test), 3);
  EXPECT_THAT(split.training_counts(), ElementsAre(0, 1, 2, 1, 0));  // item 4 is for validation alone
}

TEST(LeaveOneOutTest, TimesGoWithTheItems) {
  const LeaveOneOut split = split_of(
      "b::7::5::40\na::10::5::4\na::20::5::1\na::30::5::2\na::40::5::3\nb::7::5::10\n"
      "b::9::5::30\n");
  const std::int64_t a = split.interactions().users[0] == "a" ? 0 : 1;
  EXPECT_THAT(split.history(a, HeldOut::test).times, ElementsAre(1, 2, 3));
  EXPECT_THAT(split.history(a, HeldOut::validation).times, ElementsAre(1, 2));
  EXPECT_THAT(split.training_inputs(a).times, ElementsAre(1));
  EXPECT_THAT(split.training_inputs(a).items, ElementsAre(4));  // "20", after 7, 9 and 10
  EXPECT_THAT(split.history(1 - a, HeldOut::test).times, ElementsAre(10, 30));
  EXPECT_TRUE(split_of("a 1 2 3\n").history(0, HeldOut::test).times.empty());
}

TEST(LeaveOneOutTest, TheChecksumIsOverNames) {
  EXPECT_EQ(split_of("a 10 20 30 40\nb 20 20 30\n").checksum(), sha256_hex("a\t10 20\t30\t40\nb\t20\t20\t30\n"));
  EXPECT_NE(split_of("a 10 20 30 40\nb 20 20 30\n").checksum(), split_of("a 10 20 40 30\nb 20 20 30\n").checksum());
}

TEST(LeaveOneOutTest, ThreeItemsAreNeeded) {
  EXPECT_EQ(refusal_of([] { split_of("a 1 2 3\nb 1 2\n", 1); }),
            "leave-one-out: user 'b' has 2 interactions; at least 3, for training, validation and test");
}

TEST(Strata, QuintileEdges) {
  const auto edges = [](std::vector<std::int64_t> counts) { return quintile_edges(counts); };
  EXPECT_THAT(edges({5, 3, 1, 2, 4}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(edges({1, 2, 3, 4, 5, 6}), ElementsAre(2, 3, 4, 5));  // 1.2, 2.4, 3.6 and 4.8 counts, rounded up
  EXPECT_THAT(edges({1, 1, 1, 1, 7}), ElementsAre(1));
  EXPECT_THAT(edges({1, 7, 7, 7, 7}), ElementsAre(1));  // nothing lies above 7
  EXPECT_THAT(edges({4, 4}), ElementsAre());
  EXPECT_THAT(edges({}), ElementsAre());
}

/// Training counts of the items 1 to 5: 3, 1, 2, 1, 0. Test items: 1 (twice), 3, 4, 5.
constexpr const char* five_users = "a 1 2 1\nb 1 2 1\nc 1 2 3\nd 2 3 3 2 4\ne 4 3 5\n";

TEST(Strata, ItemQuintilesHoldEquallyManyItems) {
  const LeaveOneOut split = split_of(five_users);
  ASSERT_THAT(split.training_counts(), ElementsAre(0, 3, 1, 2, 1, 0));
  // Items in order of (count, id): 5, 2, 4, 3, 1, one in each quintile. Items 2 and 4 share their count.
  const Strata strata = by_item_frequency(user_counts(split));
  EXPECT_THAT(strata.edges, ElementsAre(0, 1, 1, 2));
  EXPECT_THAT(strata.stratum, ElementsAre(4, 4, 3, 2, 0));
  EXPECT_THAT(strata.users, ElementsAre(1, 0, 1, 1, 2));
  const auto parts = composition(user_counts(split), strata);
  EXPECT_EQ(parts[4].users, 2);
  EXPECT_DOUBLE_EQ(parts[4].mean_target_count, 3);
  EXPECT_DOUBLE_EQ(parts[2].mean_target_count, 1);
  EXPECT_DOUBLE_EQ(parts[2].mean_history_length, 4);
  EXPECT_TRUE(std::isnan(parts[1].mean_target_count));
}

TEST(Strata, GivenEdgesBelongToTheStratumBelow) {
  const LeaveOneOut split = split_of(five_users);
  EXPECT_THAT(by_item_frequency(user_counts(split), {1, 2}).stratum, ElementsAre(2, 2, 1, 0, 0));
  EXPECT_THAT(by_item_frequency(user_counts(split), printed_item_edges()).users, ElementsAre(5, 0, 0, 0, 0));
  EXPECT_THAT(by_user_activity(user_counts(split), {1}).stratum, ElementsAre(0, 0, 0, 1, 0));
  EXPECT_THAT(refusal_of([&] {
                by_item_frequency(user_counts(split), {2, 2});
              }),
              HasSubstr("edge 2 after 2; edges must rise"));
}

TEST(Strata, UsersOfOneLengthStayTogether) {
  const Strata strata = by_user_activity(user_counts(split_of(five_users)));
  EXPECT_THAT(strata.edges, ElementsAre(1));  // four users have 1 training item, one has 3
  EXPECT_THAT(strata.users, ElementsAre(4, 1));
}

TEST(Strata, FewerThanFiveItems) {
  const Strata strata = by_item_frequency(user_counts(split_of("a 1 1 2\nb 1 1 1\n")));
  EXPECT_THAT(strata.edges, ElementsAre(0, 0, 2, 2));  // items 2 and 1 in strata 0 and 2
  EXPECT_THAT(strata.stratum, ElementsAre(0, 2));
}

TEST(Strata, CorrelationByHand) {
  // Known items 2, 2, 2, 4, 2 and counts 3, 3, 2, 1, 0: the sum of products is -1.6, the squares sum to 3.2 and 6.8.
  EXPECT_NEAR(length_frequency_correlation(user_counts(split_of(five_users))), -1.6 / std::sqrt(3.2 * 6.8), 1e-15);
  EXPECT_TRUE(std::isnan(length_frequency_correlation(user_counts(split_of("a 1 2 3\nb 2 1 3\n")))));
}

}  // namespace leave_one_out_test
}  // namespace gainlens::data
