// Statistics, split and strata of public data, compared with golden/make_split_golden.py.
#include "data/interactions.h"
#include "data/leave_one_out.h"
#include "data/strata.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace gainlens::data {
namespace public_data_test {

using ::testing::ElementsAre;
using Json = nlohmann::json;

struct PublicSet {
  const char* name;
  const char* path;
};
void PrintTo(const PublicSet& set, std::ostream* out) {
  *out << set.name;
}

Json golden(const char* name) {
  std::ifstream file(GAINLENS_SOURCE_DIR "/tests/data/golden/split.json");
  return Json::parse(file).at(name);
}

void expect_strata(const LeaveOneOut& split, const Strata& strata, const Json& expected) {
  EXPECT_EQ(Json(strata.edges), expected.at("edges"));
  const auto parts = composition(user_counts(split), strata);
  ASSERT_EQ(parts.size(), expected.at("rows").size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Json& row = expected.at("rows")[i];
    EXPECT_EQ(strata.users[i], row[0]);
    EXPECT_EQ(parts[i].users, row[0]);
    EXPECT_NEAR(parts[i].mean_target_count, row[1].get<double>(), 1e-9);
    EXPECT_NEAR(parts[i].mean_history_length, row[2].get<double>(), 1e-9);
  }
}

class PublicData : public ::testing::TestWithParam<PublicSet> {};

TEST_P(PublicData, IsReadAsAnIndependentProgramReadsIt) {
  const auto path = testing::shared_data(GetParam().path);
  if (!path) GTEST_SKIP() << "no ../shared/data/" << GetParam().path;
  const Json expected = golden(GetParam().name);
  Interactions data = read_interactions(*path);
  EXPECT_EQ(data.user_count(), expected.at("users"));
  EXPECT_EQ(data.item_count(), expected.at("items"));
  EXPECT_EQ(data.interaction_count(), expected.at("interactions"));
  EXPECT_NEAR(data.density(), expected.at("density").get<double>(), 1e-15);
  EXPECT_EQ(data.tied, expected.at("tied"));
  EXPECT_EQ(data.dropped_users, 0);
  EXPECT_EQ(data.dropped_items, 0);
  const bool timed = !data.time.empty();
  const LeaveOneOut split(std::move(data));
  EXPECT_EQ(split.checksum(), expected.at("checksum"));
  expect_strata(split, by_item_frequency(user_counts(split)), expected.at("item_frequency"));
  expect_strata(split, by_user_activity(user_counts(split)), expected.at("user_activity"));
  EXPECT_NEAR(length_frequency_correlation(user_counts(split)),
              expected.at("length_frequency_correlation").get<double>(), 1e-9);
  if (!timed) return;  // no interactions are tied
  const LeaveOneOut by_item(read_interactions(*path, {.ties = {TiePolicy::Kind::item}}));
  EXPECT_EQ(by_item.checksum(), expected.at("checksum_by_item"));
}

INSTANTIATE_TEST_SUITE_P(Amazon, PublicData,
                         ::testing::Values(PublicSet{"beauty", "amazon/Beauty.txt.gz"},
                                           PublicSet{"sports", "amazon/Sports_and_Outdoors.txt.gz"},
                                           PublicSet{"instruments", "amazon/Musical_Instruments_5.json.gz"}),
                         [](const auto& tested) { return std::string(tested.param.name); });

// Numbers that others published or counted, so that both programs cannot be wrong in the same way.
TEST(PublicDataNumbers, AreTheKnownOnes) {
  EXPECT_EQ(golden("beauty").at("users"), 22363);
  EXPECT_EQ(golden("beauty").at("items"), 12101);
  EXPECT_EQ(golden("beauty").at("interactions"), 198502);
  EXPECT_EQ(golden("sports").at("users"), 35598);
  EXPECT_EQ(golden("sports").at("items"), 18357);
  EXPECT_EQ(golden("sports").at("interactions"), 296337);
  EXPECT_EQ(golden("instruments").at("users"), 1429);
  EXPECT_EQ(golden("instruments").at("items"), 900);
  EXPECT_EQ(golden("instruments").at("interactions"), 10261);
}

TEST(PublicDataNumbers, SportsTestsInQuintilesOfItems) {
  const auto path = testing::shared_data("amazon/Sports_and_Outdoors.txt.gz");
  if (!path) GTEST_SKIP() << "no ../shared/data/amazon/Sports_and_Outdoors.txt.gz";
  const LeaveOneOut split(read_interactions(*path));
  const Strata strata = by_item_frequency(user_counts(split));
  EXPECT_THAT(strata.edges, ElementsAre(4, 6, 8, 15));
  EXPECT_THAT(strata.users, ElementsAre(6782, 3326, 4106, 5901, 15483));
  // bft.tex, user activity of Sports: sequences of 4, 5, 5-6, 6-9 and 9-50 known items, that is one training item less.
  EXPECT_THAT(by_user_activity(user_counts(split)).users, ElementsAre(11416, 6885, 4338, 6620, 6339));
}

TEST(PublicDataNumbers, ItemsOfBeautyHaveTheirOwnNumbersAsIds) {
  const auto path = testing::shared_data("amazon/Beauty.txt.gz");
  if (!path) GTEST_SKIP() << "no ../shared/data/amazon/Beauty.txt.gz";
  const Interactions data = read_interactions(*path);
  for (std::size_t id = 1; id < data.items.size(); ++id) ASSERT_EQ(data.items[id], std::to_string(id));
  EXPECT_THAT(data.items_of(0), ElementsAre(1, 2, 3, 4, 5));
}

}  // namespace public_data_test
}  // namespace gainlens::data
