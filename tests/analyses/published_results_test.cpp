#include "analyses/published_results.h"

#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gainlens::analyses {
namespace published_results_test {

using ::testing::HasSubstr;
using testing::refusal_of;

constexpr const char* beauty_split = "bef754942465754b8e2ccedee42291fbb38a6dfb75d0215afc8752da5056e0ca";

TEST(PublishedResults, AreThoseOfTheSameDataBestFirst) {
  const auto beauty = published_for(22363, 12101, 198502, beauty_split);
  ASSERT_FALSE(beauty.empty());
  EXPECT_EQ(beauty.front().model, "BSARec (CE)");
  EXPECT_EQ(beauty.front().hit.mean, 0.1004);
  EXPECT_EQ(beauty.front().gain.deviation, 0.0006);
  EXPECT_TRUE(std::ranges::is_sorted(beauty, std::ranges::greater(),
                                     [](const PublishedResult& result) { return result.gain.mean; }));
  EXPECT_TRUE(std::ranges::any_of(beauty, [](const PublishedResult& result) { return result.source == "eSASRec"; }));
}

TEST(PublishedResults, OfAKnownSplitAreForThisSplitAlone) {
  const auto other = published_for(22363, 12101, 198502, "another");
  ASSERT_FALSE(other.empty());
  for (const PublishedResult& result : other) EXPECT_EQ(result.source, "RecBoard");
}

TEST(PublishedResults, NeedTheSameSizes) {
  EXPECT_TRUE(published_for(22363, 12101, 198501, beauty_split).empty());
  EXPECT_TRUE(published_for(22363, 12100, 198502, beauty_split).empty());
  EXPECT_TRUE(published_for(22362, 12101, 198502, beauty_split).empty());
}

TEST(PublishedResults, EachHasASource) {
  for (const PublishedResult& result : published_results())
    EXPECT_THAT(published_source(result.source).address, HasSubstr("https://")) << result.model;
  const auto json = to_json(published_for(22363, 12101, 198502, beauty_split));
  EXPECT_EQ(json[0]["split"], "unknown");
  EXPECT_EQ(json[0]["seeds"], 5);
}

TEST(PublishedResults, BrokenTablesAreRefused) {
  const std::string header =
      "data_set,users,items,interactions,split,model,seeds,hr@10,hr@10_deviation,ndcg@10,ndcg@10_deviation\n";
  const auto refusal = [](const std::string& text) {
    return refusal_of([&] { parse_published_results(text, "s", "s.csv"); });
  };
  EXPECT_EQ(refusal(header + "B,1,2,3,,\"M, x\",,0.1,,0.2,\n"), "accepted");
  EXPECT_THAT(refusal("a,b\n"), HasSubstr("its columns are not those"));
  EXPECT_THAT(refusal(header + "B,1,2,3,,M,,0.1,,0.2\n"), HasSubstr("line 2 has 10 of 11 columns"));
  EXPECT_THAT(refusal(header + "B,x,2,3,,M,,0.1,,0.2,\n"), HasSubstr("'x' must be a whole number"));
  EXPECT_THAT(refusal(header + "B,1,2,3,,M,,,,0.2,\n"), HasSubstr("a metric is missing"));
  EXPECT_THAT(refusal(header + "B,1,2,3,,M,,1.1,,0.2,\n"), HasSubstr("must be a number from 0 to 1"));
  EXPECT_THAT(refusal(header + "B,1,2,3,,M,,1,,0.2,"), HasSubstr("does not end with a whole line"));
}

}  // namespace published_results_test
}  // namespace gainlens::analyses
