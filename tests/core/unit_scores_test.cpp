#include "core/unit_scores.h"

#include "core/error.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace gainlens {
namespace unit_scores_test {

TEST(UnitScores, AMetricIsTheirMean) {
  EXPECT_EQ(mean_score(std::array{1.0, 2.0, 6.0}), 3);
  EXPECT_EQ(mean_score(std::array{-0.25}), -0.25);
  EXPECT_THROW(mean_score({}), InternalError);
}

TEST(UnitScores, AUnitIsAWord) {
  for (const char* noun : {"user", "question", "document"}) EXPECT_TRUE(is_unit_noun(noun)) << noun;
  for (const char* noun : {"", "User", "a user", "user1", "abcdefghijklmnopqrstu"})
    EXPECT_FALSE(is_unit_noun(noun)) << noun;
}

TEST(UnitScores, AScoreHasANameThatADatasetCanHave) {
  for (const char* name : {"loss", "ndcg@10", "2nd", "a_b-c.d+e"}) EXPECT_TRUE(is_score_name(name)) << name;
  for (const std::string& name : {std::string(), std::string("a/b"), std::string("."), std::string("@10"),
                                  std::string("a b"), std::string("a\x1b"), std::string(61, 'a')})
    EXPECT_FALSE(is_score_name(name)) << name;
}

}  // namespace unit_scores_test
}  // namespace gainlens
